"""What an estimator is called in the name of a test."""


def name_of(estimator):
    solver = getattr(estimator, "solver", "")
    return f"{type(estimator).__name__} {solver}".rstrip()
