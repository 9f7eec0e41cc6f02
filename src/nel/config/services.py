"""`services`: the models, judges and environments that benchmarks talk to."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from nel.config.base import (
    Also,
    Count,
    Float,
    Int,
    Model,
    Name,
    NotNegative,
    Penalty,
    Port,
    Positive,
    Share,
    Temperature,
    Whole,
    key,
    refusal,
)

Protocol = Literal["chat_completions", "completions", "responses"]

SUFFIXES: dict[str, Protocol] = {
    "/chat/completions": "chat_completions",
    "/completions": "completions",
    "/responses": "responses",
}
"""How the paths of OpenAI-compatible endpoints end, longest first."""


def protocol_of(url: str) -> Protocol | None:
    """The protocol that a URL's path says, or None."""
    from urllib.parse import urlsplit

    path = urlsplit(url).path.rstrip("/")
    return next((protocol for suffix, protocol in SUFFIXES.items() if path.endswith(suffix)), None)


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], BeforeValidator(_one_or_more), Also({"type": "string"})]
"""One text, or a list of them."""


class Generation(Model):
    """How a model answers. What is left out is not sent."""

    temperature: Temperature | None = key(None, "Sampling temperature, 0 to 2.")
    top_p: Share | None = key(None, "Nucleus sampling, 0 to 1.")
    top_k: Int | None = key(None, "Sample among the k most likely tokens.")
    min_p: Share | None = key(None, "Least probability of a token, relative to the most likely one.")
    max_tokens: Count | None = key(None, "Longest answer, in tokens.")
    seed: Int | None = key(None, "Sampling seed; repeat r is sent seed + r.")
    stop: Texts | None = key(None, "One text, or several, that end the answer.")
    frequency_penalty: Penalty | None = key(None, "-2 to 2.")
    presence_penalty: Penalty | None = key(None, "-2 to 2.")
    repetition_penalty: Positive | None = key(None, "Above 1 discourages repetition.")
    logit_bias: dict[str, Float] | None = key(None, "Token id to what is added to its logit.")
    n: Count | None = key(None, "Repeats asked for in one request; changes transport, never a result.")
    logprobs: bool | None = key(None, "Return the log-probability of each token of the answer.")
    top_logprobs: Whole | None = key(None, "Also of this many other tokens at each position.")
    response_format: dict[str, Any] | None = key(None, "Structured output, as the protocol defines it.")
    reasoning_effort: str | None = key(None, "How long a reasoning model thinks, in its server's words.")

    def given(self) -> dict[str, Any]:
        """The parameters that are set, by name."""
        return {name: value for name, value in self if value is not None}


def merge_generation(service: Generation, solver: Generation | None) -> dict[str, Any]:
    """The parameters of a benchmark: the solver's where it sets them, else the service's."""
    return service.given() | (solver.given() if solver else {})


class Interceptor(Model):
    """One step between NEL and a service."""

    name: Name = key(..., "Which interceptor.")
    config: dict[str, Any] = key(dict, "Its settings.")


class ModelTraffic(Model):
    """What is kept of each call. `trajectories.jsonl` keeps all of it, always."""

    capture_tool_calls: bool = key(True, "Keep tool calls.", later=True)
    capture_reasoning: bool = key(True, "Keep reasoning text.", later=True)
    capture_messages: bool = key(True, "Keep messages.", later=True)
    capture_request_body: bool = key(False, "Keep the raw body of each request beside what was asked.", later=True)
    max_content_chars: Whole = key(0, "Cut texts at this length; 0 keeps them whole.", later=True)


class Proxy(Model):
    """What is sent with each request, and what happens when one fails."""

    interceptors: list[Interceptor] = key(list, "Steps between NEL and the service.", later=True)
    verbose: bool = key(False, "Log each request and reply.", later=True)
    extra_body: dict[str, Any] = key(dict, "Fields added to each request's body.")
    extra_headers: dict[str, str] = key(dict, "Headers added to each request.")
    request_timeout: Positive = key(120.0, "Seconds for one try of a request.")
    max_retries: Whole | None = key(None, "Further tries after a failed request; the client's own number by default.")
    retry_on_status: list[Int] | None = key(None, "Which statuses are tried again; the client's own list by default.")
    max_concurrent_upstream: Count = key(64, "Most requests in flight; the smaller of this and `max_concurrent` holds.")
    model_traffic: ModelTraffic = key(ModelTraffic, "What is kept of each call.")
    finish_reason_fixup: bool = key(False, "Rewrite a finish reason that disagrees with the token counts.", later=True)


class Prices(Model):
    """What a million tokens cost."""

    prompt: NotNegative = key(..., "A million prompt tokens.")
    completion: NotNegative = key(..., "A million completion tokens, reasoning included.")
    cached: NotNegative | None = key(
        None, "A million prompt tokens that the server had cached; as `prompt` by default."
    )
    currency: str = key("USD", "Named beside each cost.")


def _path_or_off(value: Any) -> Any:
    if value is True:
        raise refusal("names the cache's directory, or is false")
    return None if value is False else value


CachePath = Annotated[str | None, BeforeValidator(_path_or_off), Also({"const": False})]


class ModelService(Model):
    """What every service that answers prompts has."""

    protocol: Protocol = key("chat_completions", "Wire format; by default what an endpoint's URL ends in says.")
    api_key: str | None = key(None, "Sent as a bearer token; write it as `${NAME}`.")
    identity: Name | None = key(None, "Stands for URL and model in the identity of results, so that they may move.")
    max_concurrent: Count | None = key(None, "Most requests in flight, over all benchmarks.")
    requests_per_minute: Positive | None = key(None, "Most requests a minute.")
    tokens_per_minute: Positive | None = key(None, "Most tokens a minute, prompts and answers together.")
    adaptive_concurrency: bool = key(True, "Find the concurrency that the service bears, below the limits.")
    prices: Prices | None = key(None, "What a million tokens cost; gives every run its cost.")
    cache: CachePath = key(None, "Directory of the response cache; false or nothing: no cache.")
    stream: bool = key(False, "Ask for streams, which gives the time to the first token.")
    reasoning_pattern: str | None = key(None, "Regular expression of reasoning inside an answer, which is kept apart.")
    max_input_tokens: Count | None = key(None, "Longest prompt that the model takes.", later=True)
    max_output_tokens: Count | None = key(None, "Upper limit of `max_tokens`; a larger one is refused.")
    tokenizer: str | None = key(None, "Tokenizer that counts prompts.", later=True)
    generation: Generation = key(Generation, "How the model answers, unless a solver says otherwise.")
    proxy: Proxy = key(Proxy, "What is sent with each request, and what happens when one fails.")

    @property
    def concurrency(self) -> int:
        """Most requests in flight: the smaller of the two keys that limit it."""
        limit = self.proxy.max_concurrent_upstream
        return min(limit, self.max_concurrent) if self.max_concurrent else limit

    @model_validator(mode="after")
    def _within_the_model(self) -> ModelService:
        most, asked = self.max_output_tokens, self.generation.max_tokens
        if most is not None and asked is not None and asked > most:
            raise refusal(f"{asked} is more than max_output_tokens, {most}", "generation", "max_tokens")
        return self


def _check_url(url: str) -> str:
    from urllib.parse import urlsplit

    if not url.startswith(("http://", "https://")) or not urlsplit(url).hostname:
        raise refusal("is not an http:// or https:// URL")
    return url


class ApiService(ModelService):
    """An endpoint that is there already."""

    type: Literal["api"] = key(..., "An endpoint that is there already.")
    url: str | None = key(None, "The whole URL that requests go to, as in https://host/v1/chat/completions.")
    urls: list[str] = key(list, "Several replicas of one service, instead of `url`.")
    model: str | None = key(None, "The model's name as sent; by default the only one that the endpoint lists.")
    health_path: str | None = key(None, "Path that must answer before the first request.")

    @field_validator("url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        return value if value is None else _check_url(value)

    @field_validator("urls")
    @classmethod
    def _replicas(cls, value: list[str]) -> list[str]:
        for index, url in enumerate(value):
            try:
                _check_url(url)
            except Exception:
                raise refusal("is not an http:// or https:// URL", index) from None
        return value

    @model_validator(mode="before")
    @classmethod
    def _protocol_of_url(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("protocol") is not None:
            return value
        urls = value.get("urls")
        url = value.get("url") or (urls[0] if isinstance(urls, list) and urls else None)
        found = protocol_of(url) if isinstance(url, str) else None
        return {**value, "protocol": found} if found else value

    @model_validator(mode="after")
    def _one_place(self) -> ApiService:
        if bool(self.url) == bool(self.urls):
            raise refusal("needs either `url` or `urls`" + (", not both" if self.url else ""))
        return self

    @property
    def endpoints(self) -> list[str]:
        """The URL, or those of all replicas."""
        return [self.url] if self.url else list(self.urls)


class ManagedService(ModelService):
    """A model server that NEL starts before the first benchmark and stops after the last."""

    model: Name = key(..., "The model: a name on the hub, or a path.")
    served_model_name: str | None = key(None, "Name that requests use; by default `model`.")
    health_path: str = key("/health", "Path that answers once the server is ready.")
    startup_timeout: Positive = key(600.0, "Seconds until it must be ready.")
    extra_env: dict[str, str] = key(dict, "Environment variables of the server.")
    extra_args: list[str] = key(list, "Arguments added to its command line.")
    depends_on: list[str] = key(list, "Services that start before it.")


class GpuServer(ManagedService):
    """What servers on GPUs share."""

    port: Port = key(8000, "Port that it listens on; 0 takes a free one.")
    tensor_parallel_size: Count | None = key(None, "GPUs that share each layer.")
    pipeline_parallel_size: Count | None = key(None, "Stages that the layers are split into.")
    data_parallel_size: Count | None = key(None, "Copies of the model.")
    num_nodes: Count = key(1, "Machines that it spans.", later=True)
    gpus: Annotated[
        list[Whole] | None,
        BeforeValidator(lambda value: list(range(value)) if type(value) is int else value),
        Also({"type": "integer"}),
    ] = key(None, "GPUs that it sees: their numbers, or how many.")
    image: str | None = key(None, "Container image that it runs in.", later=True)
    setup_commands: list[str] = key(list, "Shell commands that run before it starts.")
    container_mounts: list[str] = key(list, "Paths that the container sees, as host:container.", later=True)
    pre_cmd: str | None = key(None, "Shell command that runs right before the server, in its shell.")
    ray_binary: str = key("ray", "Program that connects several machines.", later=True)
    node_pool: str | None = key(None, "Node pool of the cluster that it runs on.", later=True)

    @model_validator(mode="after")
    def _enough_gpus(self) -> GpuServer:
        wanted = (self.tensor_parallel_size or 1) * (self.pipeline_parallel_size or 1) * (self.data_parallel_size or 1)
        if self.gpus is not None and wanted > len(self.gpus):
            raise refusal(f"{len(self.gpus)} GPUs, but the parallel sizes need {wanted}", "gpus")
        return self


class VllmService(GpuServer):
    """vLLM, as a local process."""

    type: Literal["vllm"] = key(..., "vLLM, as a local process.")


class SglangService(GpuServer):
    """SGLang, as a local process."""

    type: Literal["sglang"] = key(..., "SGLang, as a local process.")


class TrtLlmService(GpuServer):
    """TensorRT-LLM, as a local process."""

    type: Literal["trt_llm"] = key(..., "TensorRT-LLM, as a local process.")


class LlamaCppService(ManagedService):
    """A small model on this machine's processor."""

    type: Literal["llama_cpp"] = key(..., "llama.cpp, as a local process on this machine's processor.")
    model: Name = key(..., "A GGUF file: its path, or package://NAME/inner/path of an installed package.")
    port: Port = key(0, "Port that it listens on; 0 takes a free one.")
    threads: Count = key(1, "Processor threads; more than one suffers when anything else runs.")
    context: Count = key(8192, "Tokens of context, shared by the parallel slots.")
    parallel: Count = key(4, "Requests that it answers at once.")
    chat_template: str | None = key(None, "Jinja chat template, instead of the one in the file.")


class NimService(GpuServer):
    """A NIM container."""

    later: ClassVar[str] = "services of type nim"
    type: Literal["nim"] = key(..., "A NIM container.")


class DockerModelService(GpuServer):
    """Any model server in a container."""

    later: ClassVar[str] = "services of type docker_model"
    type: Literal["docker_model"] = key(..., "Any model server in a container.")


class DynamoWorker(Model):
    """The workers of one role."""

    tensor_parallel_size: Count | None = key(None, "GPUs that share each layer.")
    pipeline_parallel_size: Count | None = key(None, "Stages that the layers are split into.")
    data_parallel_size: Count | None = key(None, "Copies of the model.")
    num_nodes: Count = key(1, "Machines of one worker.")
    num_workers: Count = key(1, "Workers of this role.")
    node_pool: str | None = key(None, "Node pool that they run on.")
    extra_args: list[str] = key(list, "Arguments added to their command line.")
    extra_env: dict[str, str] = key(dict, "Their environment variables.")


class DynamoService(GpuServer):
    """Dynamo: one server of several workers."""

    later: ClassVar[str] = "services of type dynamo"
    type: Literal["dynamo"] = key(..., "Dynamo: one server of several workers.")
    engine: Literal["sglang"] = key("sglang", "What its workers run.")
    prefill: DynamoWorker | None = key(None, "Workers that read prompts; goes with `decode`.")
    decode: DynamoWorker | None = key(None, "Workers that write answers; goes with `prefill`.")

    @model_validator(mode="after")
    def _both_or_none(self) -> DynamoService:
        if (self.prefill is None) != (self.decode is None):
            raise refusal("`prefill` and `decode` go together")
        return self


class GymService(Model):
    """A Gym resource server."""

    later: ClassVar[str] = "services of type gym"
    type: Literal["gym"] = key(..., "A Gym resource server.")
    url: str | None = key(None, "Where it is; without it NEL starts one.")
    port: Port = key(8000, "Port that it listens on.")
    image: str | None = key(None, "Container image that it runs in.")
    benchmark: str | None = key(None, "Benchmark that it serves.")
    server_cmd: str | None = key(None, "Command that starts it.")
    startup_timeout: Positive = key(120.0, "Seconds until it must be ready.")
    depends_on: list[str] = key(list, "Services that start before it.")
    node_pool: str | None = key(None, "Node pool that it runs on.")


class NatService(Model):
    """A NAT agent server."""

    later: ClassVar[str] = "services of type nat"
    type: Literal["nat"] = key(..., "A NAT agent server.")
    port: Port = key(8000, "Port that it listens on.")
    image: str | None = key(None, "Container image that it runs in.")
    nat_config_file: str | None = key(None, "Its own config.")
    startup_timeout: Positive = key(120.0, "Seconds until it must be ready.")
    depends_on: list[str] = key(list, "Services that start before it.")
    node_pool: str | None = key(None, "Node pool that it runs on.")


class CustomService(Model):
    """A service of one's own class."""

    later: ClassVar[str] = "services of type custom"
    type: Literal["custom"] = key(..., "A service of one's own class.")
    class_path: Name = key(..., "module:Class.")
    config: dict[str, Any] = key(dict, "Its settings.")


Service = Annotated[
    ApiService
    | LlamaCppService
    | VllmService
    | SglangService
    | TrtLlmService
    | NimService
    | DockerModelService
    | DynamoService
    | GymService
    | NatService
    | CustomService,
    Field(discriminator="type"),
]
