#!/usr/bin/env python3
"""Makes chat.json, a tokenizer with the special tokens of several families, and chats.json: chats, what the published templates make of them, and the
tokens of that, with those of answers.

    pip install tokenizers==0.23.3 jinja2; tests/data/tokenizers/chats.py

The templates are those of tokenizer_config.json of Qwen2-7B-Instruct, Qwen2.5-7B-Instruct (without its tools), Llama-2-7b-chat-hf,
Meta-Llama-3-8B-Instruct, Llama-3.1-8B-Instruct (without its tools), Mistral-7B-Instruct-v0.2 and gemma-2-9b-it. They are rendered as transformers
renders them.
"""

import json
import pathlib

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

import make
from texts import texts

here = pathlib.Path(__file__).resolve().parent
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<s>", "</s>", "<bos>",
           "<start_of_turn>", "<end_of_turn>"]
TAKE_TURNS = ("{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate "
              "user/assistant/user/assistant/...') }}{% endif %}")
CHATML = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
QWEN25 = ("{%- if messages[0]['role'] == 'system' %}\n    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n{%- else %}\n    "
          "{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}\n{%- endif %}\n"
          "{%- for message in messages %}\n    {%- if (message.role == \"user\") or (message.role == \"system\" and not loop.first) or "
          "(message.role == \"assistant\" and not message.tool_calls) %}\n        {{- '<|im_start|>' + message.role + '\\n' + message.content + "
          "'<|im_end|>' + '\\n' }}\n    {%- endif %}\n{%- endfor %}\n")
LLAMA31 = ("{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- set date_string = \"26 Jul 2024\" %}\n{%- endif %}\n"
           "{%- if messages[0]['role'] == 'system' %}\n    {%- set system_message = messages[0]['content']|trim %}\n    {%- set messages = messages[1:] %}\n"
           "{%- else %}\n    {%- set system_message = \"\" %}\n{%- endif %}\n{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}\n"
           "{{- \"Cutting Knowledge Date: December 2023\\n\" }}\n{{- \"Today Date: \" + date_string + \"\\n\\n\" }}\n{{- system_message }}\n"
           "{{- \"<|eot_id|>\" }}\n{%- for message in messages %}\n    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ "
           "message['content'] | trim + '<|eot_id|>' }}\n{%- endfor %}\n")
TEMPLATES = {
    "chatml": "{% for message in messages %}" + CHATML + "{% endfor %}",
    "qwen2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful assistant."
             "<|im_end|>\n' }}{% endif %}" + CHATML + "{% endfor %}",
    "qwen2.5": QWEN25,
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}"
              "{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}" + TAKE_TURNS +
              "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + "
              "message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
              "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
              "{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "llama3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
              "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
              "{% endif %}{{ content }}{% endfor %}",
    "llama3.1": LLAMA31,
    "mistral": "{{ bos_token }}{% for message in messages %}" + TAKE_TURNS + "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + "
               "' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}"
               "{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}",
    "gemma": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
             "{% for message in messages %}" + TAKE_TURNS + "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
             "{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}",
}
AROUND = {"llama2": ("<s>", "</s>"), "mistral": ("<s>", "</s>"), "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
          "llama3.1": ("<|begin_of_text|>", "<|eot_id|>"), "gemma": ("<bos>", "<eos>")}
ENDS = {"chatml": "<|im_end|>", "qwen2": "<|im_end|>", "qwen2.5": "<|im_end|>", "llama3": "<|eot_id|>", "llama3.1": "<|eot_id|>", "llama2": "</s>",
        "mistral": "</s>", "gemma": "<end_of_turn>"}


def chats():
    def message(role, content):
        return {"role": role, "content": content}
    one = [message("user", "Hello, who are you?"), message("assistant", "The others, and 12345 words.\n")]
    two = one + [message("user", "\n  And then? "), message("assistant", "  def f(x):\n\treturn x + 1 ")]
    several = [message("user", text if i % 2 == 0 else text + "\u3000\x1f") for i, text in enumerate(texts(5, 6))]
    for i in (1, 3, 5):
        several[i]["role"] = "assistant"
    system = message("system", " You are brief. ")
    return [one, two, several, one[:1], [system] + one, [system] + two, [message("system", "")] + one, [one[0], message("assistant", "")], one + one[1:],
            [one[1]], [message("user", ""), message("assistant", "\n\nnew lines first"), message("user", "x\n"), message("assistant", "\n")],
            one + [message("system", "in between")] + one]


def render(name, messages):
    def raise_exception(why):
        raise TemplateError(why)
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    bos, eos = AROUND.get(name, ("", ""))
    return environment.from_string(TEMPLATES[name]).render(messages=messages, bos_token=bos, eos_token=eos)


def answers(name, messages, text):
    """Where answers lie in the text: from their content to the token that ends them."""
    spans, at = [], 0
    for message in messages:
        trims = name not in ("chatml", "qwen2", "qwen2.5", "mistral")
        content = message["content"].strip() if trims else message["content"]
        if message["role"] == "system" and name.startswith("llama"):
            continue
        # The text of messages before has content, role and tokens of its own: it is passed over message by message.
        if message["role"] == "assistant":
            head = {"chatml": "assistant\n", "qwen2": "assistant\n", "qwen2.5": "assistant\n", "llama2": "[/INST] ", "mistral": "[/INST]",
                    "llama3": "assistant<|end_header_id|>\n\n", "llama3.1": "assistant<|end_header_id|>\n\n", "gemma": "model\n"}[name]
            begin = text.index(head + content, at) + len(head)
            end = text.index(ENDS[name], begin + len(content)) + len(ENDS[name])
            spans.append((begin, end))
            at = end
        else:
            at = text.index(content, at) + len(content)
    return spans


def main():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(make.llama3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.train_from_iterator(texts(1, 2000), trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens(SPECIAL)
    (here / "chat.json").write_text(json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
    cases = []
    for name in TEMPLATES:
        for messages in chats():
            try:
                text = render(name, messages)
            except TemplateError as refused:
                cases.append({"template": name, "messages": messages, "refused": str(refused)})
                continue
            made = tokenizer.encode(text, add_special_tokens=False)
            spans = answers(name, messages, text)
            counts = [int(any(begin < b and end > a for a, b in spans)) for begin, end in made.offsets]
            cases.append({"template": name, "messages": messages, "text": text, "ids": made.ids, "answers": counts})
    (here / "chats.json").write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
