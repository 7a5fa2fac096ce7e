"""NumPy's functions and methods by what type of numbers they give."""

from __future__ import annotations

CREATORS = frozenset({"zeros", "ones", "empty", "linspace", "logspace", "geomspace", "eye", "identity", "tri"})
"""float64 unless a `dtype` is given."""
WINDOWS = frozenset({"hanning", "hamming", "blackman", "bartlett", "kaiser", "sinc"})
"""float64, and no `dtype` to ask for another."""
FROM_FILE = frozenset({"loadtxt", "genfromtxt", "fromfile", "frombuffer"})
RANDOM = frozenset(
    {"normal", "uniform", "random", "standard_normal", "rand", "randn", "random_sample", "beta", "gamma"}
    | {"exponential", "standard_exponential", "laplace", "lognormal", "triangular", "multivariate_normal", "dirichlet"}
)
RANDOM_INTEGERS = frozenset({"integers", "randint", "binomial", "poisson", "permutation"})
INTEGERS = frozenset(
    {"bincount", "argmax", "argmin", "argsort", "digitize", "searchsorted", "nonzero", "count_nonzero", "indices"}
)
FLOATING = frozenset(
    {"log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "cbrt", "sin", "cos", "tan", "arcsin", "arccos"}
    | {"arctan", "arctan2", "hypot", "sinh", "cosh", "tanh", "deg2rad", "rad2deg", "true_divide", "reciprocal"}
)
"""Integers become float64; floats keep their type."""
MEANS = frozenset({"mean", "std", "var", "average", "median", "percentile", "quantile", "nanmean", "nanstd"})
JOINING = frozenset(
    {"array", "asarray", "ascontiguousarray", "stack", "concatenate", "vstack", "hstack", "dstack", "where", "tile"}
    | {"pad", "clip", "flip", "fliplr", "flipud", "transpose", "squeeze", "expand_dims", "maximum", "minimum", "abs"}
    | {"sum", "cumsum", "max", "min", "outer", "dot", "matmul", "roll", "meshgrid", "copy", "reshape", "ravel"}
    | {"moveaxis", "swapaxes", "square", "power", "add", "subtract", "multiply", "broadcast_to", "diag", "rot90"}
)
"""The type of the parts, the widest first."""
KEEPING = frozenset(
    {"reshape", "ravel", "flatten", "copy", "transpose", "squeeze", "repeat", "clip", "sum", "cumsum", "max", "min"}
    | {"take", "swapaxes", "round", "prod", "dot", "diagonal", "conj"}
)
"""Methods that give their array's type."""
