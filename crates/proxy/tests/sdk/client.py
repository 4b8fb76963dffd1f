"""An official Python SDK as a client of the gateway; its requests are read from stdin.

    client.py anthropic|chat|responses|gemini

stdin, one JSON line per request: {"url": "…", "stream": true, "said": "…", "session": "…" or null, "slowly": false}
stdout, JSON lines: {"piece": 12} for each piece of text in a stream, with its length; at the end {"done": {"text": "…", "error": null}}
With "slowly", it waits for a line on stdin after each piece.
"""

import json
import sys

api = sys.argv[1]
SCHEMA = {"type": "object", "properties": {}}


def tell(**line):
    print(json.dumps(line), flush=True)


# Each function yields the pieces of text. The retries are the defaults of the SDK, if it has any.


def anthropic_pieces(url, stream, said, headers):
    import anthropic

    client = anthropic.Anthropic(api_key="made-up", base_url=url + "anthropic", default_headers=headers)
    ask = {
        "model": "claude-made-up",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [{"type": "text", "text": said}]}],
        "tools": [{"name": "Read", "input_schema": SCHEMA}],
    }
    if not stream:
        yield from (block.text for block in client.messages.create(**ask).content)
        return
    with client.messages.stream(**ask) as events:
        yield from events.text_stream
        assert events.get_final_message().stop_reason == "end_turn"


def openai_client(url, headers):
    import openai

    return openai.OpenAI(api_key="made-up", base_url=url + "openai/v1", default_headers=headers)


def chat_pieces(url, stream, said, headers):
    answer = openai_client(url, headers).chat.completions.create(
        model="gpt-made-up",
        messages=[{"role": "user", "content": said}],
        tools=[{"type": "function", "function": {"name": "Read", "parameters": SCHEMA}}],
        stream=stream,
    )
    if not stream:
        yield answer.choices[0].message.content
        return
    finish = None
    for chunk in answer:
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            if choice.delta.content:
                yield choice.delta.content
    assert finish == "stop", finish


def responses_pieces(url, stream, said, headers):
    answer = openai_client(url, headers).responses.create(
        model="gpt-made-up",
        input=[{"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}],
        tools=[{"type": "function", "name": "Read", "parameters": SCHEMA, "strict": False}],
        stream=stream,
    )
    if not stream:
        yield answer.output_text
        return
    kind = None
    for event in answer:
        # A keep-alive event may arrive at any time, also after the last event.
        if event.type != "keepalive":
            kind = event.type
        if event.type == "response.output_text.delta":
            yield event.delta
    assert kind == "response.completed", kind


def gemini_pieces(url, stream, said, headers):
    from google import genai
    from google.genai import types

    # It retries only if configured: as often as the other SDKs, without delays.
    again = types.HttpRetryOptions(
        attempts=3, initial_delay=0.001, max_delay=0.001, jitter=0.001, http_status_codes=[408, 429, 500, 503, 529]
    )
    options = types.HttpOptions(base_url=url + "gemini", headers=headers, retry_options=again)
    client = genai.Client(api_key="made-up", http_options=options)
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="Read", parameters_json_schema=SCHEMA)])
    ask = {"model": "gemini-made-up", "contents": said, "config": types.GenerateContentConfig(tools=[tool])}
    if not stream:
        yield client.models.generate_content(**ask).text
        return
    finish = None
    for chunk in client.models.generate_content_stream(**ask):
        finish = chunk.candidates[0].finish_reason or finish
        if chunk.text:
            yield chunk.text
    assert finish == types.FinishReason.STOP, finish


pieces_of = {
    "anthropic": anthropic_pieces,
    "chat": chat_pieces,
    "responses": responses_pieces,
    "gemini": gemini_pieces,
}[api]

for line in iter(sys.stdin.readline, ""):
    asked = json.loads(line)
    headers = {"x-claude-code-session-id": asked["session"]} if asked["session"] else {}
    text, error = [], None
    try:
        for piece in pieces_of(asked["url"], asked["stream"], asked["said"], headers):
            text.append(piece)
            if asked["stream"]:
                tell(piece=len(piece))
                if asked["slowly"]:
                    sys.stdin.readline()
    except Exception as caught:
        status = getattr(caught, "status_code", None) or getattr(caught, "code", None)
        status = status if isinstance(status, int) else None
        error = {"type": type(caught).__name__, "status": status, "message": str(caught)}
    tell(done={"text": "".join(text), "error": error})
