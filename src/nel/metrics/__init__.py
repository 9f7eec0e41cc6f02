"""Statistics: every mean comes as an `Estimate`, with an interval that honours repeats and clusters."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "Estimate": "nel.metrics.estimate",
        "RunningMean": "nel.metrics.running",
        "bootstrap_ci": "nel.metrics.bootstrap",
        "category_breakdown": "nel.metrics.mean",
        "clustered_se": "nel.metrics.intervals",
        "estimate_maj_at_k": "nel.metrics.majority",
        "estimate_mean": "nel.metrics.mean",
        "estimate_mean_at_k": "nel.metrics.passk",
        "estimate_pass_at_k": "nel.metrics.passk",
        "estimate_pass_hat_k": "nel.metrics.passk",
        "maj_at_k": "nel.metrics.majority",
        "normal_ci": "nel.metrics.intervals",
        "pass_at_k": "nel.metrics.passk",
        "pass_hat_k": "nel.metrics.passk",
        "t_interval": "nel.metrics.intervals",
        "two_level_se": "nel.metrics.intervals",
        "wilson_interval": "nel.metrics.intervals",
    },
)
