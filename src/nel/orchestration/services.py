"""`Services`: the models of a run by name, each started or connected once, when something first needs it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nel.config.load import LoadedConfig
from nel.config.services import SUFFIXES, ApiService, ManagedService, ModelService, Service
from nel.core.errors import NelError, UsageError
from nel.inference.client import ModelClient
from nel.inference.cost import Prices
from nel.inference.settings import ServiceSettings
from nel.orchestration.model_server import APIDeployment, ModelServer, managed_identity, model_server, served_name

_SUFFIX_OF: Final = {protocol: suffix for suffix, protocol in SUFFIXES.items()}
_NOT_STARTED: Final = "http://service.not-started.invalid"


class Services:
    """Settings, clients and servers of the services of one configuration; close it in the loop that used it."""

    def __init__(self, loaded: LoadedConfig, log_dir: Path) -> None:
        self._loaded = loaded
        self._log_dir = log_dir
        self._settings: dict[str, ServiceSettings] = {}
        self._clients: dict[str, ModelClient] = {}
        self._servers: dict[str, ModelServer] = {}
        self._failures: dict[str, NelError] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def settings(self, name: str) -> ServiceSettings:
        """What is known of a service before it is started: enough for its identity.

        An endpoint without a `model` is asked for its models; `UsageError` lists them where there are several.
        """
        if name not in self._settings:
            self._settings[name] = await self._make_settings(name)
        return self._settings[name]

    async def unstarted_client(self, name: str) -> ModelClient:
        """A client that knows what the service is and can plan with it, but must not send."""
        return ModelClient(await self.settings(name))

    async def client(self, name: str) -> ModelClient:
        """The one client of a service; a managed server (and those it depends on) is started first.

        A service that could not be started is not tried again: everyone who needs it is told why.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            if name in self._failures:
                raise self._failures[name]
            if name not in self._clients:
                try:
                    self._clients[name] = ModelClient(await self._started(name))
                except NelError as error:
                    self._failures[name] = error
                    raise
        return self._clients[name]

    async def _started(self, name: str) -> ServiceSettings:
        settings, service = await self.settings(name), self._service(name)
        if not isinstance(service, ManagedService):
            return settings
        for other in service.depends_on:
            await self.client(other)
        return replace(settings, urls=[await self._start(name, service)])

    async def close(self) -> None:
        """Close all clients, then stop all servers, the last started first."""
        async with contextlib.AsyncExitStack() as stack:  # one that fails to close does not keep the others open
            for server in self._servers.values():
                stack.push_async_callback(server.stop)
            for client in self._clients.values():
                stack.push_async_callback(client.close)
        self._clients.clear()
        self._servers.clear()

    def config(self, name: str | None) -> ModelService | None:
        """What the configuration says of a service."""
        return self._service(name) if name is not None else None

    def _service(self, name: str) -> ModelService:
        service = self._loaded.config.services[name]
        if not isinstance(service, ModelService):
            raise self._loaded.error(("services", name), "is no model service")
        return service

    async def _start(self, name: str, service: ManagedService) -> str:
        server = model_server(name, service, self._log_dir)
        self._servers[name] = server
        url = await server.start()
        await server.health_wait()
        return url.rstrip("/") + "/v1" + _SUFFIX_OF[service.protocol]

    async def _make_settings(self, name: str) -> ServiceSettings:
        service = self._service(name)
        common = _common(name, service)
        if isinstance(service, ManagedService):
            identity = service.identity or await asyncio.to_thread(managed_identity, service)
            return ServiceSettings(
                **common,
                urls=[_NOT_STARTED + _SUFFIX_OF[service.protocol]],
                model=served_name(service),
                declared_identity=identity,
            )
        assert isinstance(service, ApiService)
        settings = ServiceSettings(
            **common, urls=service.endpoints, model=service.model or "", declared_identity=service.identity
        )
        if service.model is None:
            settings = replace(settings, model=await self._only_model(name, settings))
        return settings

    async def _only_model(self, name: str, settings: ServiceSettings) -> str:
        client = ModelClient(settings)
        try:
            models = await client.list_models()
        finally:
            await client.close()
        if len(models) == 1:
            return models[0]
        listed = ", ".join(models) or "none"
        raise UsageError(
            f"service {name}: the endpoint serves {len(models)} models, so one must be named: {listed}",
            hint="Set `model` in the service, or --model-id on the command line.",
        )


def _common(name: str, service: ModelService) -> dict[str, Any]:
    proxy, prices = service.proxy, service.prices
    given: dict[str, Any] = {}
    if proxy.max_retries is not None:
        given["max_retries"] = proxy.max_retries
    if proxy.retry_on_status is not None:
        given["retry_on_status"] = frozenset(proxy.retry_on_status)
    return {
        "name": name,
        "protocol": service.protocol,
        "api_key": service.api_key,
        "headers": dict(proxy.extra_headers),
        "extra_body": dict(proxy.extra_body),
        "generation": {},  # the solver's: it knows what the benchmark needs beneath them
        "request_timeout": proxy.request_timeout,
        "max_concurrent": service.concurrency,
        "requests_per_minute": service.requests_per_minute,
        "tokens_per_minute": service.tokens_per_minute,
        "adaptive": service.adaptive_concurrency,
        "prices": Prices(input=prices.prompt, output=prices.completion, cached_input=prices.cached) if prices else None,
        "cache_dir": Path(service.cache) if service.cache else None,
        "stream": service.stream,
        "reasoning_pattern": service.reasoning_pattern,
        **given,
    }


async def wait_for_endpoint(name: str, service: Service | ModelService) -> None:
    """Returns once the `health_path` of an endpoint answers; `ServiceError` where it does not."""
    if isinstance(service, ApiService):
        await APIDeployment(name, service.endpoints[0], service.health_path).health_wait()
