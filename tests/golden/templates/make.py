"""Writes `rendered.jsonl`: the published chat templates, rendered by the reference, Hugging Face's `transformers`.

    cargo xtask fetch vocab
    python3 -m venv hf && hf/bin/pip install transformers==5.24.0 jinja2==3.1.6
    hf/bin/python make.py TEMPLATES_FOLDER > rendered.jsonl     # TEMPLATES_FOLDER is `templates` in the cache

One line per template and conversation of `conversations.json`: the prompt, or the kind of error and its message.
"""

import datetime
import json
import pathlib
import sys

import jinja2
from transformers.utils import chat_template_utils as reference

HERE = pathlib.Path(__file__).parent


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 12, 31, 23, 59, 59, tzinfo=tz)


reference.datetime = Clock


def render(source, case):
    variables = {"bos_token": "<s>", "eos_token": "</s>"}
    try:
        prompt = reference.render_jinja_template(
            [case["messages"]], tools=case.get("tools"), chat_template=source, add_generation_prompt=True, **variables
        )
        return {"prompt": prompt[0][0] if isinstance(prompt, tuple) else prompt[0]}
    except jinja2.TemplateError as error:
        kind = "refused" if type(error) is jinja2.TemplateError else "failed"
        return {kind: str(error)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def main():
    cases = json.loads((HERE / "conversations.json").read_text())
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        for name, case in cases.items():
            line = {"template": path.stem, "conversation": name, **render(path.read_text(), case)}
            print(json.dumps(line, ensure_ascii=False))


main()
