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

`follow(program.machine, model, inputs)` of building/forward.py runs a model's `forward` on tensors of known or unknown
shape. `program.machine` evaluates expressions and runs statements in a frame; calls of modules are not run by that,
unless `on_call` says what they give.

`values.py` says what values there are. An `Unknown` may carry `alternatives`: both values of an `if` that could not be
decided. What is approximate: effects of library functions on their arguments, loops over what is not known (run once),
`try` (taken to succeed unless it surely raises), and descriptors and metaclasses, which are not followed.
"""
