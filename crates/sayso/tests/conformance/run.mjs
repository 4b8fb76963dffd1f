// Runs the cases over the transports. Standard input: {"servers":[{url,token,login,verdicts,workspace,process},…]}, one for each transport,
// in their order; a server counts wrong tokens, so they do not share one. Standard output: one JSON object for each cell.
// With --names: the transports.
import { cases, Scene } from "./cases.mjs";
import { surfaceCases } from "./surface_cases.mjs";
import { names, traits } from "./transports.mjs";

async function input() {
  let text = "";
  for await (const piece of process.stdin.setEncoding("utf8")) text += piece;
  return JSON.parse(text);
}

/** A case that hangs is one that fails. */
function bounded(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("it does not end")), 60_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function column(name, server) {
  const scene = new Scene(name, server, traits(name));
  for (const [title, run] of Object.entries({ ...surfaceCases, ...cases })) {
    const cell = { transport: name, case: title };
    try {
      cell.result = (await bounded(run(scene))) ?? "ok";
    } catch (error) {
      Object.assign(cell, { result: "FAIL", why: error?.stack ?? String(error) });
    }
    process.stdout.write(`${JSON.stringify(cell)}\n`);
  }
}

if (process.argv.includes("--names")) {
  process.stdout.write(JSON.stringify(names));
} else {
  const { servers } = await input();
  await Promise.all(names.map((name, at) => column(name, servers[at])));
  // Connections of HTTP/2 stay open for a while; nobody needs them any more.
  process.stdout.write("", () => process.exit(0));
}
