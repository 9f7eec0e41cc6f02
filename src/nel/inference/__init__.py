"""Talking to models: one `ModelClient` for each service, shared by everything that uses that service."""

from nel.core.loading import lazy_export

__getattr__, __dir__ = lazy_export(
    __name__,
    {
        "BaseInterceptor": "nel.inference.chain",
        "Chain": "nel.inference.chain",
        "InferenceError": "nel.inference.failure",
        "ModelClient": "nel.inference.client",
        "ModelRequest": "nel.inference.request",
        "Prices": "nel.inference.cost",
        "ServiceSettings": "nel.inference.settings",
    },
)
