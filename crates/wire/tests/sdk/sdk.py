"""Runs the official Python libraries against a server on 127.0.0.1 that answers what the test wrote.

    sdk.py answers    stdin: {"anthropic": {"stream": "…", "error": "…", "body": "…", "refusal": "…"}, …}
                      stdout: one JSON line for each of them with what the library made of it
    sdk.py requests   stdout: one JSON line for each request that the libraries sent
"""

import base64
import http.server
import json
import sys
import threading

import anthropic
import openai
from google import genai
from google.genai import types as gemini

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class Server(http.server.ThreadingHTTPServer):
    """Answers with what is set, and remembers what it was asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.kind, self.headers, self.body, self.requests = 200, "application/json", {}, b"{}", []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        self.server.requests.append(
            {
                "method": self.command,
                "path": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "body": self.rfile.read(length).decode(),
            }
        )
        self.send_response(self.server.status)
        self.send_header("content-type", self.server.kind)
        self.send_header("content-length", str(len(self.server.body)))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_):
        pass


server = Server()


class Client:
    """One library: how it streams, asks for a whole answer, and what it makes of both."""

    def __init__(self):
        self.blocks, self.usage, self.finish = [], {}, None

    def add(self, kind, text, **more):
        if self.blocks and self.blocks[-1]["type"] == kind and kind in ("text", "thinking"):
            self.blocks[-1]["text"] += text
            self.blocks[-1].update(more)
        else:
            self.blocks.append({"type": kind, "text": text, **more})

    def call(self, id, name, arguments):
        self.blocks.append({"type": "call", "id": id, "name": name, "arguments": arguments})

    def told(self):
        return {"blocks": self.blocks, "usage": self.usage, "finish": self.finish}


class Anthropic(Client):
    def client(self, **options):
        return anthropic.Anthropic(api_key="made-up", base_url=server.url, **options)

    ask = {"model": "claude-made-up", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}

    def stream(self):
        with self.client(max_retries=0).messages.stream(**self.ask) as stream:
            for event in stream:
                # What the library accumulates is read at the end, but an error has to show what came before.
                if event.type == "text":
                    self.add("text", event.text)
            self.blocks = []
            self.read(stream.get_final_message())

    def whole(self, **options):
        self.read(self.client(**options).messages.create(**self.ask))

    def read(self, message):
        for block in message.content:
            if block.type == "text":
                self.add("text", block.text)
            elif block.type == "thinking":
                self.add("thinking", block.thinking, signature=block.signature)
            elif block.type == "tool_use":
                self.call(block.id, block.name, block.input)
        usage = message.usage
        self.usage = {"input": usage.input_tokens, "output": usage.output_tokens, "cache_read": usage.cache_read_input_tokens}
        self.finish = message.stop_reason


class Chat(Client):
    def client(self, **options):
        return openai.OpenAI(api_key="made-up", base_url=server.url + "/v1", **options)

    ask = {"model": "gpt-made-up", "messages": [{"role": "user", "content": "Hello"}]}

    def stream(self):
        calls = {}
        stream = self.client(max_retries=0).chat.completions.create(
            stream=True, stream_options={"include_usage": True}, **self.ask
        )
        for chunk in stream:
            for choice in chunk.choices:
                self.say(choice.delta)
                for call in choice.delta.tool_calls or []:
                    so_far = calls.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
                    so_far["id"] += call.id or ""
                    so_far["name"] += call.function.name or ""
                    so_far["arguments"] += call.function.arguments or ""
                self.finish = choice.finish_reason or self.finish
            self.count(chunk.usage)
        for call in calls.values():
            self.call(call["id"], call["name"], json.loads(call["arguments"]))

    def whole(self, **options):
        answer = self.client(**options).chat.completions.create(**self.ask)
        message = answer.choices[0].message
        self.say(message)
        for call in message.tool_calls or []:
            self.call(call.id, call.function.name, json.loads(call.function.arguments))
        self.finish = answer.choices[0].finish_reason
        self.count(answer.usage)

    def say(self, message):
        thinking = (message.model_extra or {}).get("reasoning_content")
        if thinking:
            self.add("thinking", thinking)
        if message.content:
            self.add("text", message.content)

    def count(self, usage):
        if usage:
            cached = usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens
            self.usage = {"input": usage.prompt_tokens, "output": usage.completion_tokens, "cache_read": cached}


class Responses(Chat):
    ask = {"model": "gpt-made-up", "input": "Hello"}

    def stream(self):
        text, arguments = "", {}
        for event in self.client(max_retries=0).responses.create(stream=True, **self.ask):
            if event.type == "response.output_text.delta":
                text += event.delta
                self.blocks = [{"type": "text", "text": text}]
            elif event.type == "response.function_call_arguments.delta":
                arguments[event.output_index] = arguments.get(event.output_index, "") + event.delta
            elif event.type == "response.completed":
                self.blocks = []
                self.read(event.response)
                assert text == event.response.output_text, (text, event.response.output_text)
                calls = [json.loads(value) for value in arguments.values()]
                assert calls == [block["arguments"] for block in self.blocks if block["type"] == "call"]

    def whole(self, **options):
        self.read(self.client(**options).responses.create(**self.ask))

    def read(self, response):
        for item in response.output:
            if item.type == "message":
                self.add("text", "".join(part.text for part in item.content))
            elif item.type == "reasoning":
                text = "".join(part.text for part in item.summary)
                self.add("thinking", text, signature=item.encrypted_content)
            elif item.type == "function_call":
                self.call(item.call_id, item.name, json.loads(item.arguments))
        usage = response.usage
        cached = usage.input_tokens_details.cached_tokens
        self.usage = {"input": usage.input_tokens, "output": usage.output_tokens, "cache_read": cached}
        self.finish = response.status


class Gemini(Client):
    def client(self, **_):
        return genai.Client(api_key="made-up", http_options=gemini.HttpOptions(base_url=server.url))

    ask = {"model": "gemini-made-up", "contents": "Hello"}

    def stream(self):
        # It closes its connections when nobody holds it any more.
        client = self.client()
        for chunk in client.models.generate_content_stream(**self.ask):
            self.read(chunk)

    def whole(self, **options):
        client = self.client()
        self.read(client.models.generate_content(**self.ask))

    def read(self, answer):
        candidate = answer.candidates[0]
        for part in candidate.content.parts or []:
            signature = part.thought_signature and base64.b64encode(part.thought_signature).decode()
            more = {"signature": signature} if signature else {}
            if part.function_call:
                self.call(part.function_call.id, part.function_call.name, part.function_call.args)
            elif part.thought:
                self.add("thinking", part.text, **more)
            elif part.text:
                self.add("text", part.text, **more)
        usage = answer.usage_metadata
        self.usage = {
            "input": usage.prompt_token_count,
            "output": usage.candidates_token_count,
            "cache_read": usage.cached_content_token_count,
        }
        self.finish = candidate.finish_reason and candidate.finish_reason.value


CLIENTS = {"anthropic": Anthropic, "chat": Chat, "responses": Responses, "gemini": Gemini}


def answers():
    for name, cases in json.load(sys.stdin).items():
        for case, content in cases.items():
            streamed = case in ("stream", "error")
            server.status = 400 if case == "refusal" else 200
            server.kind = "text/event-stream" if streamed else "application/json"
            server.headers = cases.get("refusal_headers", {}) if case == "refusal" else {}
            if case == "refusal_headers":
                continue
            server.body, server.requests = content.encode(), []
            client, error = CLIENTS[name](), None
            try:
                # With its own idea of trying again, which a refusal has to stop.
                client.stream() if streamed else client.whole()
            except Exception as caught:
                error = {"type": type(caught).__name__, "message": str(caught)}
            told = {"api": name, "case": case, "error": error, "requests": len(server.requests), **client.told()}
            print(json.dumps(told), flush=True)


def requests():
    image = base64.b64encode(PIXEL).decode()
    for name, calls in {
        "anthropic": [anthropic_request],
        "chat": [chat_request],
        "responses": [responses_request],
        "gemini": [gemini_request],
    }.items():
        for call in calls:
            for stream in (False, True):
                server.requests = []
                try:
                    call(CLIENTS[name]().client(max_retries=0), image, stream)
                except Exception as caught:
                    # The server's answer says nothing; only what was asked matters. A request that was not made does.
                    if not server.requests:
                        raise caught
                for request in server.requests:
                    print(json.dumps({"api": name, "stream": stream, **request}), flush=True)


def anthropic_request(client, image, stream):
    answer = client.messages.create(
        model="claude-made-up",
        max_tokens=1000,
        stream=stream,
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        thinking={"type": "enabled", "budget_tokens": 1024},
        tools=[{"name": "read", "description": "Reads a file.", "input_schema": SCHEMA}],
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is in a.txt, and here?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I have to look.", "signature": "EqQB"},
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b.txt"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
    )
    list(answer) if stream else None


def chat_request(client, image, stream):
    arguments = [json.dumps({"path": path}) for path in ("a.txt", "b.txt")]
    answer = client.chat.completions.create(
        model="gpt-made-up",
        stream=stream,
        tools=[{"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": SCHEMA}}],
        messages=[
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is in a.txt, and here?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + image}},
                ],
            },
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {"id": f"call_{at}", "type": "function", "function": {"name": "read", "arguments": text}}
                    for at, text in enumerate(arguments)
                ],
            },
            {"role": "tool", "tool_call_id": "call_0", "content": "one"},
            {"role": "tool", "tool_call_id": "call_1", "content": "no such file"},
            {"role": "user", "content": "Go on."},
        ],
    )
    list(answer) if stream else None


def responses_request(client, image, stream):
    answer = client.responses.create(
        model="gpt-made-up",
        stream=stream,
        instructions="Be brief.",
        store=False,
        include=["reasoning.encrypted_content"],
        tools=[{"type": "function", "name": "read", "description": "Reads a file.", "parameters": SCHEMA, "strict": False}],
        input=[
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is in a.txt, and here?"},
                    {"type": "input_image", "image_url": "data:image/png;base64," + image, "detail": "auto"},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABo"},
            {"type": "function_call", "call_id": "call_0", "name": "read", "arguments": '{"path":"a.txt"}'},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"b.txt"}'},
            {"type": "function_call_output", "call_id": "call_0", "output": "one"},
            {"type": "function_call_output", "call_id": "call_1", "output": "no such file"},
            {"role": "user", "content": "Go on."},
        ],
    )
    list(answer) if stream else None


def gemini_request(client, image, stream):
    part = gemini.Part
    ask = {
        "model": "gemini-made-up",
        "config": gemini.GenerateContentConfig(
            system_instruction="Be brief.",
            max_output_tokens=1000,
            tools=[
                gemini.Tool(
                    function_declarations=[
                        gemini.FunctionDeclaration(
                            name="read", description="Reads a file.", parameters_json_schema=SCHEMA
                        )
                    ]
                )
            ],
            automatic_function_calling=gemini.AutomaticFunctionCallingConfig(disable=True),
        ),
        "contents": [
            gemini.Content(
                role="user",
                parts=[
                    part.from_text(text="What is in a.txt, and here?"),
                    part.from_bytes(data=PIXEL, mime_type="image/png"),
                ],
            ),
            gemini.Content(
                role="model",
                parts=[
                    part(
                        function_call=gemini.FunctionCall(id="c1", name="read", args={"path": "a.txt"}),
                        thought_signature=b"signed",
                    ),
                    part(function_call=gemini.FunctionCall(id="c2", name="read", args={"path": "b.txt"})),
                ],
            ),
            gemini.Content(
                role="user",
                parts=[
                    part(function_response=gemini.FunctionResponse(id="c1", name="read", response={"output": "one"})),
                    part(function_response=gemini.FunctionResponse(id="c2", name="read", response={"error": "none"})),
                    part.from_text(text="Go on."),
                ],
            ),
        ],
    }
    if stream:
        list(client.models.generate_content_stream(**ask))
    else:
        client.models.generate_content(**ask)


{"answers": answers, "requests": requests}[sys.argv[1]]()
