"""A callback of scikit-learn that does nothing; those of the tests do one thing more."""


class Callback:
    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass
