"""Renders conversations by transformers' apply_chat_template, for templates of each known format: tests/data/chats.json.

Usage: python3 tests/data/make_chats.py [FILE]       needs transformers and tokenizers; the tests need neither

The templates are written here, in the spellings of the models' own: the expressions that Tessera recognizes, without tools.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

TURNS = """{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"""
IM = """{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"""
IM_ANSWER = """{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def im_default(system):
    return ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\n" + system +
            "<|im_end|>\\n' }}{% endif %}" + IM + "{% endfor %}" + IM_ANSWER)


QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {{- messages[0]['content'] }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou\\'re an assistant.\\nBe brief.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant") %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
QWEN3 = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- if '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\\n' + content }}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
LLAMA2 = ("""{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}"""
          """{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}""" + TURNS +
          """{% if loop.index0 == 0 and system_message != false %}"""
          """{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"""
          """{% else %}{% set content = message['content'] %}{% endif %}"""
          """{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"""
          """{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""")
LLAMA3_MESSAGE = """'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>'"""
LLAMA3_ANSWER = """{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""
LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = " + LLAMA3_MESSAGE + " %}"
          "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}" + LLAMA3_ANSWER)
LLAMA31 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}

{#- The system message comes first, with the date. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- """ + LLAMA3_MESSAGE + """ }}
{%- endfor %}
""" + LLAMA3_ANSWER
GEMMA = ("""{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"""
         """{% for message in messages %}""" + TURNS +
         """{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}"""
         """{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"""
         """{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}""")


def gemma3(joint):
    return """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '""" + joint + """' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""


def mistral(user, assistant, when):
    """`user` has CONTENT where the content goes."""
    def text(content):
        return '"' + user.replace("CONTENT", '" + ' + content + ' + "') + '"'
    return """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    """ + TURNS + """
    {%- if message["role"] == "user" %}
        {%- if """ + when + """ and system_message is defined %}
            {{- """ + text('system_message + "\\n\\n" + message["content"]') + """ }}
        {%- else %}
            {{- """ + text('message["content"]') + """ }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- """ + assistant + """ }}
    {%- endif %}
{%- endfor %}
"""


MISTRAL1 = ("{{ bos_token }}{% for message in messages %}" + TURNS +
            "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
            "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}"
            "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}")

# Name of the format, template, bos_token, eos_token.
TEMPLATES = [
    ("chatml", "{% for message in messages %}" + IM + "{% endfor %}" + IM_ANSWER, "<|im_start|>", "<|im_end|>"),
    ("chatml", im_default("You are a helpful AI assistant named SmolLM, trained by Hugging Face"), "<|im_start|>", "<|im_end|>"),
    ("chatml", im_default("You are a helpful assistant.").replace("'<|im_end|>' + '\\n'", "'<|im_end|>\\n'"), None, "<|im_end|>"),
    ("chatml", im_default("One line,\\nand another.").replace("\\n", "\n"), None, "<|im_end|>"),
    ("chatml", QWEN25, None, "<|im_end|>"),
    ("qwen3", QWEN3, None, "<|im_end|>"),
    ("llama2", LLAMA2, "<s>", "</s>"),
    ("llama3", LLAMA3, "<|begin_of_text|>", "<|eot_id|>"),
    ("llama3.1", LLAMA31, "<|begin_of_text|>", "<|eot_id|>"),
    ("gemma", GEMMA, "<bos>", "<eos>"),
    ("gemma3", gemma3("\\n\\n"), "<bos>", "<eos>"),
    ("gemma3", gemma3("\\n"), "<bos>", "<eos>"),
    ("mistral", MISTRAL1, "<s>", "</s>"),
    ("mistral-v2", mistral(" [INST] CONTENT [/INST]", '" " + message["content"] + eos_token', "loop.first"), "<s>", "</s>"),
    ("mistral-v3", mistral("[INST] CONTENT[/INST]", '" " + message["content"]|trim + eos_token', "loop.last"), "<s>", "</s>"),
    ("mistral-nemo", mistral("[INST]CONTENT[/INST]", 'message["content"] + eos_token', "loop.last"), "<s>", "</s>"),
]

TALKS = [
    ["Hello"],
    ["  Two lines\nand blanks \u3000\n"],
    ["Hello", "Hi there", "Who are you?"],
    ["One", " I am an assistant.  \n", "\tTwo\u00a0", "", "Three {bos} {{ bos_token }}"],
    ["What is 1 + 1?", "<think>\nTwo.\n</think>\n\nIt is 2.", "Sure? <|im_end|> </s>"],
    ["Gr\u00f6\u00dfe?", "\U0001f600", "'\"\\n"],
]
SYSTEMS = [None, "Be brief.", "  Blanks around, \n two lines\n"]


def conversations():
    for talk in TALKS:
        for system in SYSTEMS:
            messages = [] if system is None else [{"role": "system", "content": system}]
            yield messages + [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(talk)]


def main():
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "chats.json"
    made = []
    for name, template, bos, eos in TEMPLATES:
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token=bos, eos_token=eos, chat_template=template)
        texts = []
        for messages in conversations():
            if name in ("gemma", "mistral") and messages[0]["role"] == "system":
                texts.append(None)  # the template has no system message
                continue
            texts.append(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        made.append({"name": name, "template": template, "bos_token": bos, "eos_token": eos, "texts": texts})
    value = {"conversations": list(conversations()), "templates": made}
    to.write_text(json.dumps(value, ensure_ascii=True, indent=1) + "\n")


if __name__ == "__main__":
    main()
