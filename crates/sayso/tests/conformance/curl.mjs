// Plain curl with JSON, as the README shows it, as a transport: so that it goes through the same cases as the others.
import { spawn } from "node:child_process";
import { create, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";

function run(url, header, body) {
  const written = [...header].flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
  const options = ["--silent", "--show-error", "--write-out", "\n%{http_code}", "--data-binary", "@-"];
  const curl = spawn("curl", [...options, ...written, url]);
  return new Promise((resolve, reject) => {
    let [output, errors] = ["", ""];
    curl.stdout.setEncoding("utf8").on("data", (text) => (output += text));
    curl.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
    curl.on("error", reject);
    curl.on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(`curl ended with ${code}: ${errors}`))));
    curl.stdin.end(body);
  });
}

export function createCurlTransport({ baseUrl, interceptors }) {
  const send = async (request) => {
    const { method } = request;
    const output = await run(request.url, request.header, toJsonString(method.input, request.message));
    const end = output.lastIndexOf("\n");
    const [body, status] = [output.slice(0, end), output.slice(end + 1)];
    if (status !== "200") {
      throw errorFromJson(JSON.parse(body), new Headers(), new ConnectError(`HTTP ${status}`, Code.Unknown));
    }
    const message = fromJsonString(method.output, body);
    return { stream: false, service: method.parent, method, header: new Headers(), trailer: new Headers(), message };
  };
  return {
    unary(method, signal, timeoutMs, header, input, contextValues) {
      const request = {
        stream: false,
        service: method.parent,
        method,
        requestMethod: "POST",
        url: `${baseUrl}/${method.parent.typeName}/${method.name}`,
        header: new Headers(header),
        contextValues,
        message: create(method.input, input),
      };
      request.header.set("Content-Type", "application/json");
      return interceptors.reduceRight((next, wrap) => wrap(next), send)(request);
    },
    stream() {
      throw new Error("curl is tried with single answers only");
    },
  };
}
