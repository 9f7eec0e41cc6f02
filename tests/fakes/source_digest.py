"""The digest of a module's code: what it does, whatever its comments and layout."""

import hashlib
import inspect
import io
import tokenize

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER}


def source_digest(*objects) -> str:
    """Digest of the tokens of modules, functions or classes, docstrings left out."""
    state = hashlib.sha256()
    for item in objects:
        at_start = True
        for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(item)).readline):
            if token.type in _LAYOUT:
                continue
            if token.type in {tokenize.INDENT, tokenize.DEDENT}:
                state.update(b"\0")
                at_start = token.type == tokenize.INDENT
                continue
            if not (at_start and token.type == tokenize.STRING):
                state.update(token.string.encode() + b"\0")
            at_start = False
    return state.hexdigest()[:16]
