"""What the source builds: models and their values, worked out without running anything.

An evaluator of Python over abstract values. It knows constants, containers, functions, classes and objects of the
workspace, `torch.nn`'s layers by their constructors' parameters, and tensors by their shapes. What the source does not
tell is `Unknown`; nothing in here raises for what the evaluated source does, and every question has a budget of steps.

`Program(known, files)` is the way in. It finds the models when first asked and keeps them:

    program = Program(Knowledge(workspace), RecordedFiles(workspace, ()))
    for model in program.roots():                       # ModuleValue: what scripts and functions build
        for path, module, is_certain in descendants(model):   # as named_modules() gives them (building/roots.py)
            module.name, module.cls, module.path, module.node  # class, ClassValue or None, built where
            module.arguments["width"]                    # constructor arguments, defaults too
            module.layer_arguments["kernel_size"]        # those of the torch.nn layer it is or derives from
            dict(module.tensors())["weight"].sizes       # (64, 3, 7, 7); None if not known

To read a `forward` with `self` bound to a module:

    scope = program.method_scope(model, "forward")       # parameters unknown, unless given
    program.evaluate(expression, scope)                  # self.blocks -> ModuleValue, self.downsample is None -> bool
    program.items(program.evaluate(loop.iter, scope))    # for block in self.blocks: the items, MORE if further follow
    program.bind(loop.target, item, scope)               # the loop's target, before its body is looked at
    program.execute([statement], scope)                  # n = len(self.blocks)
    program.truth(value)                                 # True, False, or None where it is not known

Calls of modules are not run by that (they give `Unknown`); `method_scope` of the called module goes on inside it.
`program.function_scope(function)` is the same for a plain function, `program.named(path, name)` for a name of a file.
`values.py` says what values there are. An `Unknown` may carry `alternatives`: both values of an `if` that could not be
decided. What is approximate: effects of library functions on their arguments, loops over what is not known (run once),
`try` (taken to succeed unless it surely raises), and descriptors and metaclasses, which are not followed.
"""
