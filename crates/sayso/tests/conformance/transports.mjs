// The official transports, by the names that the table shows. Each makes a transport for a server and a token.
import diagnostics from "node:diagnostics_channel";
import net from "node:net";
import * as node from "@connectrpc/connect-node";
import * as web from "@connectrpc/connect-web";
import { createCurlTransport } from "./curl.mjs";

/** Shows the token, as a client over a network has to; none where there is none to show. */
const showing = (token) => (next) => (request) => {
  if (token) request.header.set("Authorization", `Bearer ${token}`);
  return next(request);
};

/** Every request of HTTP/1.1 that this process makes, as `host method path`; the clients themselves do not tell. */
const requests = [];
diagnostics.subscribe("http.client.request.start", ({ request }) =>
  requests.push(`${request.getHeader("host")} ${request.method} ${request.path}`),
);
diagnostics.subscribe("undici:request:create", ({ request }) =>
  requests.push(`${new URL(request.origin).host} ${request.method} ${request.path}`),
);

/** The methods of a server's service that were called with GET, or with POST. */
export function called(server, verb) {
  const start = `${new URL(server.url).host} ${verb} /sayso.v1.ReviewService/`;
  const made = requests.filter((request) => request.startsWith(start));
  return new Set(made.map((request) => request.slice(start.length).split("?")[0]));
}

// The socket for verdicts is an abstract one.
const abstract = ({ verdicts }) => `\0${verdicts}`;
const overSocket = (server) => ({ createConnection: () => net.connect(abstract(server)) });
// The name in the address is not looked up where a socket is dialled.
const local = { baseUrl: "http://localhost" };
const { createConnectTransport, createGrpcTransport, createGrpcWebTransport } = node;

/**
 * Node's fetch with `redirect: "error"`, which connect-web asks for, stops listening to the abort signal once its Request
 * object was garbage-collected (nodejs/undici#4627). No server of ours redirects, so that "follow" is the same.
 */
const abortable = { fetch: (url, init) => fetch(url, { ...init, redirect: "follow" }) };

const table = {
  "connect-node Connect 1.1 binary": (options) =>
    createConnectTransport({ ...options, httpVersion: "1.1", useBinaryFormat: true }),
  "connect-node Connect 1.1 JSON": (options) =>
    createConnectTransport({ ...options, httpVersion: "1.1", useBinaryFormat: false }),
  "connect-node Connect 1.1 GET": (options) =>
    createConnectTransport({ ...options, httpVersion: "1.1", useHttpGet: true }),
  "connect-node Connect 2": (options) => createConnectTransport({ ...options, httpVersion: "2" }),
  "connect-node gRPC 2": (options) => createGrpcTransport({ ...options }),
  "connect-node gRPC-Web 1.1": (options) => createGrpcWebTransport({ ...options, httpVersion: "1.1" }),
  "connect-node gRPC-Web 2": (options) => createGrpcWebTransport({ ...options, httpVersion: "2" }),
  "connect-node Connect 1.1 socket": (options, server) =>
    createConnectTransport({ ...options, ...local, httpVersion: "1.1", nodeOptions: { socketPath: abstract(server) } }),
  "connect-node gRPC 2 socket": (options, server) =>
    createGrpcTransport({ ...options, ...local, nodeOptions: overSocket(server) }),
  "connect-web Connect binary": (options) => web.createConnectTransport({ ...options, ...abortable, useBinaryFormat: true }),
  "connect-web Connect JSON": (options) => web.createConnectTransport({ ...options, ...abortable, useBinaryFormat: false }),
  "connect-web Connect GET": (options) => web.createConnectTransport({ ...options, ...abortable, useHttpGet: true }),
  "connect-web gRPC-Web": (options) => web.createGrpcWebTransport({ ...options, ...abortable }),
  "curl JSON": (options) => createCurlTransport(options),
};

export const names = Object.keys(table);

/** What is special about a transport. */
export const traits = (name) => ({
  unaryOnly: name.startsWith("curl"),
  usesGet: name.endsWith(" GET"),
  overSocket: name.endsWith(" socket"),
  inBrowsers: name.startsWith("connect-web"),
});

export function open(name, server, token) {
  return table[name]({ baseUrl: server.url, interceptors: [showing(token)] }, server);
}
