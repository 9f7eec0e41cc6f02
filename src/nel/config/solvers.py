"""`solver`: how a benchmark's problems are attempted."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from nel.config.base import Count, Model, Name, Positive, key, refusal
from nel.config.services import Generation

TimeoutStrategy = Literal["override", "task", "max"]


class SimpleSolver(Model):
    """One request per attempt: chat, completion or vision, as the service's protocol and the problem's images say."""

    type: Literal["simple"] = key(..., "One request per attempt.")
    service: Name = key(..., "Service that answers.")
    system_prompt: str | None = key(None, "Replaces the benchmark's system prompt.")
    generation: Generation | None = key(None, "Replaces the service's parameters, one by one.")
    image_detail: Literal["auto", "low", "high"] = key("auto", "How closely a model looks at images.")


class LoglikelihoodSolver(Model):
    """Decides among a problem's options by their log-likelihood: one text completion with `echo` for each option."""

    type: Literal["loglikelihood"] = key(..., "Decides by the log-likelihood of each option.")
    service: Name = key(..., "Service that answers: text completions that return the prompt's log-probabilities.")
    system_prompt: str | None = key(None, "Stands before the prompt; replaces the benchmark's system prompt.")


class CustomSolver(Model):
    """A solver of one's own class."""

    type: Literal["custom"] = key(..., "A solver of one's own class.")
    service: Name | None = key(None, "Service that it is given.")
    class_path: Name = key(..., "module:Class, or path/file.py:Class.")
    config: dict[str, Any] = key(dict, "Its settings, given as keyword arguments.")


class HarborSolver(Model):
    """A Harbor agent in a sandbox."""

    later: ClassVar[str] = "solvers of type harbor"
    type: Literal["harbor"] = key(..., "A Harbor agent in a sandbox.")
    service: Name = key(..., "Service that the agent talks to.")
    agent: Name = key(..., "Agent by name, import path or directory.")
    agent_kwargs: dict[str, Any] = key(dict, "Its settings.")
    container_env: dict[str, str] = key(dict, "Environment variables of its sandbox.")
    run_timeout: Positive | None = key(None, "Seconds for the agent.")
    cmd_timeout: Positive | None = key(None, "Seconds for one command.")
    timeout_strategy: TimeoutStrategy = key("override", "Whose time limit holds: this one, the task's, or the longer.")
    max_agent_timeout: Positive | None = key(None, "Most seconds for the agent, whatever the task says.")
    skill: str | None = key(None, "Skill that the agent is given.")
    skill_dir: str | None = key(None, "Where that skill is.")


class AgentSolver(Model):
    """An agent framework's agent."""

    later: ClassVar[str] = "solvers of type agent"
    type: Literal["agent"] = key(..., "An agent framework's agent.")
    service: Name = key(..., "Service that the agent talks to.")
    framework: str = key("harbor", "The framework.")
    agent: Name = key(..., "The agent.")
    agent_kwargs: dict[str, Any] = key(dict, "Its settings.")


class ToolCallingSolver(Model):
    """A loop of model calls and tool calls."""

    later: ClassVar[str] = "solvers of type tool_calling"
    type: Literal["tool_calling"] = key(..., "A loop of model calls and tool calls.")
    service: Name = key(..., "Service that answers.")
    resource_service: str | None = key(None, "Gym service that offers tools.")
    sandbox_tools: bool = key(False, "Offer a shell and file tools in a sandbox.")
    max_turns: Count = key(50, "Most model calls.")
    system_prompt: str | None = key(None, "Replaces the benchmark's system prompt.")
    generation: Generation | None = key(None, "Replaces the service's parameters, one by one.")
    tool_timeout: Positive = key(180.0, "Seconds for one tool call.")
    max_output_chars: Count = key(16384, "Longest tool result that is shown to the model.")
    response_mode: Literal["last_message", "sandbox_artifact"] = key("last_message", "What counts as the answer.")

    @model_validator(mode="after")
    def _some_tools(self) -> ToolCallingSolver:
        if not self.resource_service and not self.sandbox_tools:
            raise refusal("needs tools: `resource_service`, or `sandbox_tools: true`")
        return self


class GymDelegationSolver(Model):
    """A Gym server attempts the problem."""

    later: ClassVar[str] = "solvers of type gym_delegation"
    type: Literal["gym_delegation"] = key(..., "A Gym server attempts the problem.")
    service: Name = key(..., "Service that the agent talks to.")
    gym_service: Name = key(..., "The Gym service.")
    gym_agent: str | None = key(None, "Its agent.")
    trust_reward: bool = key(False, "Take the server's reward instead of verifying.")


class NatSolver(Model):
    """A NAT agent attempts the problem."""

    later: ClassVar[str] = "solvers of type nat"
    type: Literal["nat"] = key(..., "A NAT agent attempts the problem.")
    service: Name = key(..., "The NAT service.")


class OpenClawSolver(Model):
    """The OpenClaw agent."""

    later: ClassVar[str] = "solvers of type openclaw"
    type: Literal["openclaw"] = key(..., "The OpenClaw agent.")
    service: Name = key(..., "Service that the agent talks to.")
    thinking: str = key("high", "How long it thinks.")
    context_window: Count | None = key(None, "Tokens of context.")
    max_concurrent: Count = key(4, "Agents at once.")
    idle_timeout_seconds: Positive = key(600.0, "Seconds without output after which it is stopped.")
    run_timeout: Positive | None = key(None, "Seconds for the agent.")
    timeout_strategy: TimeoutStrategy = key("task", "Whose time limit holds: this one, the task's, or the longer.")
    max_agent_timeout: Positive | None = key(None, "Most seconds for the agent, whatever the task says.")
    web_search_provider: Literal["tavily"] | None = key(None, "Web search that it is given.")
    config_path: str | None = key(None, "Its own config.")
    skip_preflight: bool = key(False, "Start without its self-check.")
    openclaw_bin: str = key("openclaw", "The program.")


class ContainerSolver(Model):
    """A harness in a container that runs the whole evaluation."""

    later: ClassVar[str] = "solvers of type container"
    type: Literal["container"] = key(..., "A harness in a container runs the whole evaluation.")
    service: Name = key(..., "Service that the harness talks to.")
    uri: str | None = key(None, "Its image and task, where the benchmark's name does not say so.")
    endpoint_type: str | None = key(None, "What the harness calls the service's protocol.")
    adapter_config: dict[str, Any] | None = key(None, "Settings of its own proxy.")
    params: dict[str, Any] | None = key(None, "Further settings of the harness.")
    env_vars: dict[str, str] = key(dict, "Environment variables inside.")
    mounts: dict[str, str] = key(dict, "Paths that it sees, host to container.")


class OracleSolver(Model):
    """The reference solution, which measures the sandbox and not a model."""

    later: ClassVar[str] = "solvers of type oracle"
    type: Literal["oracle"] = key(..., "The task's own solution.")
    run_timeout: Positive | None = key(None, "Seconds for the solution.")
    timeout_strategy: TimeoutStrategy = key("override", "Whose time limit holds: this one, the task's, or the longer.")
    max_agent_timeout: Positive | None = key(None, "Most seconds, whatever the task says.")


Solver = Annotated[
    SimpleSolver
    | LoglikelihoodSolver
    | CustomSolver
    | HarborSolver
    | AgentSolver
    | ToolCallingSolver
    | GymDelegationSolver
    | NatSolver
    | OpenClawSolver
    | ContainerSolver
    | OracleSolver,
    Field(discriminator="type"),
]
