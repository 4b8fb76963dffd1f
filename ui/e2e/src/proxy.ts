import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer, request as send, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Policy of the engine's pages. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export interface CuttableProxy {
  url: string;
  /** Ends all connections and accepts no new one. */
  cut(): void;
  /** Accepts connections again. */
  mend(): void;
  stop(): Promise<void>;
}

/** Forwards to an engine, and can cut the line. With `dist`, serves the app from there in place of the engine's own. */
export async function startProxy(target: string, dist?: string): Promise<CuttableProxy> {
  let isCut = false;
  const upstream = new URL(target);
  const server: Server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", target).pathname;
    const file = dist === undefined ? null : asset(dist, path, request.headers.accept ?? "");
    if (file !== null) {
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "", "content-security-policy": POLICY });
      createReadStream(file).pipe(response);
      return;
    }
    const headers = { ...request.headers, host: upstream.host };
    if (headers.origin !== undefined) headers.origin = target;
    const forwarded = send(
      { host: upstream.hostname, port: upstream.port, method: request.method, path: request.url, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        answer.on("error", () => response.destroy());
      },
    );
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    request.pipe(forwarded);
  });
  server.on("connection", (socket) => {
    if (isCut) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    cut: () => {
      isCut = true;
      server.closeAllConnections();
    },
    mend: () => (isCut = false),
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function asset(dist: string, path: string, accept: string): string | null {
  if (path.startsWith("/sayso.v1.") || path.startsWith("/login")) return null;
  const file = join(dist, path);
  if (path !== "/" && existsSync(file) && statSync(file).isFile()) return file;
  return accept.includes("text/html") ? join(dist, "index.html") : null;
}
