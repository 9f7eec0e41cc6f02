"""Failure categories: the one list of reasons why an attempt has no score, or a poor one."""

from __future__ import annotations

CATEGORIES: dict[str, str] = {
    # errors: the attempt was not measured
    "rate_limit": "the service kept answering 429",
    "server_error": "the service kept answering 5xx, or an error inside a 200",
    "model_timeout": "a request passed its time limit",
    "problem_timeout": "an attempt passed the benchmark's time limit",
    "connection_error": "the service could not be reached, or the connection broke",
    "bad_response": "the reply was not what the protocol promises",
    "bad_request": "the service refused the request (a 4xx that will not get better)",
    "auth_error": "the service refused the credentials",
    "context_window_exceeded": "the prompt is longer than the model's context",
    "content_filter": "the service withheld the answer",
    "budget_exceeded": "the run's cost or token budget is spent",
    "solver_error": "the solver raised",
    "scorer_error": "the scorer raised",
    "seed_error": "the problem could not be rendered",
    "sandbox_error": "the sandbox failed",
    "server_lost": "a managed service ended while it was asked",
    "interrupted": "the run was stopped first",
    # unscored: answered, but not graded
    "judge_unparsable": "the judge's reply could not be read",
    "judge_disagreement": "the judges found no majority",
    "unscorable": "the scorer declined to grade",
    # scored, but worth a look
    "truncated": "the answer ended at the token limit",
    "no_answer": "no answer was found in the reply",
    "empty_response": "the reply was empty",
    "refusal": "the model declined to answer",
    "wrong_answer": "the program failed a test",
    "syntax_error": "what the reply gave is no program",
    "runtime_error": "the program ended, or raised, before its tests",
    "code_timeout": "program and tests took longer than they may",
    "out_of_memory": "program and tests took more memory than they may",
}
"""Category to meaning. `docs/failures.md` lists them; a test compares the two."""
