import { escapeUntrusted, escapeUntrustedLines } from "../diff/words.js";
import { Icon } from "../icon.js";
import { Fact, Script } from "./command.js";
import type { ToolArgument, ToolView } from "./model.js";

/** Arguments with the descriptions of the schema, its violations, and a delegation. */
export function ToolSubject({ tool, edited }: { tool: ToolView; edited: string | undefined }) {
  const { delegation } = tool;
  return (
    <div class="action">
      {tool.mismatches.map((text) => (
        <p key={text} class="panel-warning">
          <Icon name="warning" small />
          <span>{escapeUntrusted(text)}</span>
        </p>
      ))}
      {delegation && <Delegation delegation={delegation} />}
      {tool.command !== undefined && (
        <>
          <p class="panel-fact">The tool passes this command to a shell:</p>
          <Script text={tool.command} doubts={[]} />
        </>
      )}
      {edited === undefined ? (
        (tool.arguments.length > 0 || !delegation) && <Arguments list={tool.arguments} />
      ) : (
        <>
          <p class="panel-fact">Arguments as edited:</p>
          <pre class="output">{escapeUntrustedLines(edited)}</pre>
        </>
      )}
      {tool.paths.length > 0 && (
        <dl class="action-facts">
          <Fact name={tool.access ?? "paths"}>
            <code>{tool.paths.map(escapeUntrusted).join(", ")}</code>
          </Fact>
        </dl>
      )}
    </div>
  );
}

function Delegation({ delegation }: { delegation: NonNullable<ToolView["delegation"]> }) {
  const { agent, prompt, tools, description } = delegation;
  return (
    <dl class="action-facts">
      {agent !== undefined && <Fact name="Agent">{escapeUntrusted(agent)}</Fact>}
      {description !== undefined && <Fact name="Description">“{escapeUntrusted(description)}”</Fact>}
      <Fact name="Tools">
        {tools.length === 0 ? (
          <span class="secondary">not named by the call</span>
        ) : (
          tools.map((tool) => (
            <code key={tool} class="chip">
              {escapeUntrusted(tool)}
            </code>
          ))
        )}
      </Fact>
      <Fact name="Prompt">
        <p class="prompt-text">{escapeUntrustedLines(prompt)}</p>
      </Fact>
    </dl>
  );
}

function Arguments({ list }: { list: ToolArgument[] }) {
  if (list.length === 0) return <p class="panel-fact">The call has no arguments.</p>;
  return (
    <dl class="arguments" aria-label="Arguments">
      {list.map((argument) => (
        <div key={argument.name}>
          <dt>
            <code>{escapeUntrusted(argument.name)}</code>
            <span class="secondary">
              {argument.type ?? "not in the schema"}
              {argument.required && ", required"}
            </span>
          </dt>
          <dd>
            <JsonValue json={argument.valueJson} />
            {argument.description !== undefined && <p class="secondary">{escapeUntrusted(argument.description)}</p>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** JSON text with token colours. */
function JsonValue({ json }: { json: string }) {
  const text = pretty(json);
  const tokens = text.split(
    /("(?:[^"\\]|\\.)*"(?:\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\btrue\b|\bfalse\b|\bnull\b)/,
  );
  return (
    <pre class="json">
      {tokens.map((token, index) => {
        const name = tokenName(token);
        const shown = escapeUntrustedLines(token);
        return name === undefined ? (
          shown
        ) : (
          <span key={index} class={`token-${name}`}>
            {shown}
          </span>
        );
      })}
    </pre>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}

function tokenName(token: string): string | undefined {
  if (token.startsWith('"')) return token.endsWith(":") ? "type" : "string";
  if (/^-?\d/.test(token)) return "number";
  return /^(true|false|null)$/.test(token) ? "keyword" : undefined;
}
