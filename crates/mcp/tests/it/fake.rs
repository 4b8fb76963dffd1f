//! A server over standard input and output that does what a call asks for.

use std::path::Path;

use sayso_mcp::ServerConfig;

const SCRIPT: &str = r#"
import json, os, sys, time

def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def log(text):
    with open("log", "a") as file:
        file.write(text + "\n")

def answer(request, result):
    send({"id": request["id"], "result": result})

def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}

log("start " + " ".join(sys.argv[1:]))
mode = sys.argv[1] if len(sys.argv) > 1 else ""
if mode == "die":
    sys.stderr.write("no such database\n")
    sys.exit(3)
if mode == "noise":
    sys.stdout.write("starting up, please wait\n{broken json\n\n")
    sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if mode == "silent":
        sys.stderr.write("waiting for a license server\n")
        sys.stderr.flush()
        continue
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "fake", "version": "1"}
        answer(request, {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": info})
    elif method == "tools/list":
        page = int(request.get("params", {}).get("cursor") or 0)
        names = [f"tool_{page}_{n}" for n in range(3)]
        tools = [{"name": name, "description": "d" * 10, "inputSchema": {"type": "object"}} for name in names]
        result = {"tools": tools}
        if mode == "endless":
            result["nextCursor"] = "1"
        elif page < 2:
            result["nextCursor"] = str(page + 1)
        answer(request, result)
    elif method == "notifications/cancelled":
        log("cancelled " + str(request["params"]["requestId"]))
    elif method == "tools/call":
        name, given = request["params"]["name"], request["params"].get("arguments", {})
        log("call " + name)
        token = request["params"].get("_meta", {}).get("progressToken")
        if name == "echo":
            answer(request, text(json.dumps(given)))
        elif name == "env":
            answer(request, text(json.dumps(dict(os.environ))))
        elif name == "fail":
            answer(request, text("it did not work", isError=True))
        elif name == "refuse":
            send({"id": request["id"], "error": {"code": -32602, "message": "no such thing"}})
        elif name == "die":
            sys.stderr.write("x" * 100000 + "\nsegmentation fault\n")
            sys.exit(7)
        elif name == "hang":
            pass
        elif name == "progress":
            for done in (1, 2, 3):
                send({"method": "notifications/progress", "params": {"progressToken": token, "progress": done, "total": 3, "message": f"step {done}"}})
            answer(request, text("done"))
        elif name == "changed":
            send({"method": "notifications/tools/list_changed"})
            answer(request, text("done"))
        elif name == "long":
            answer(request, text("a" * given["bytes"] + "z"))
        elif name == "image":
            image = {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
            answer(request, {"content": [image, {"type": "image", "data": "AAAA", "mimeType": "image/tiff"}, {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]})
        elif name == "structured":
            answer(request, {"content": [], "structuredContent": {"a": 1}})
        elif name == "garbage":
            sys.stdout.write("\x00\xff not json\n" + '{"jsonrpc": "2.0", "id": 12345, "result": {}}\n' + '{"jsonrpc": "2.0"}\n')
            answer(request, text("still here"))
log("end")
"#;

/// Writes the script into a directory and returns the configuration that starts it in a mode.
pub(crate) fn config(directory: &Path, mode: &str) -> ServerConfig {
    std::fs::write(directory.join("server.py"), SCRIPT).unwrap();
    ServerConfig::process("python3", ["server.py", mode])
}

/// Returns the lines that the server logged.
pub(crate) fn log(directory: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
