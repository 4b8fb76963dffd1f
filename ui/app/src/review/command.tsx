import type { ComponentChildren } from "preact";

import { escapeUntrusted, escapeUntrustedLines } from "../diff/words.js";
import { Icon } from "../icon.js";
import type { CommandView } from "./model.js";
import type { DryRun } from "./usePanel.js";

/** Script with marked parts, effects, doubts, syntax check and dry run. */
export function CommandSubject({
  command,
  edited,
  dryRun,
}: {
  command: CommandView;
  edited: string | undefined;
  dryRun: DryRun | undefined;
}) {
  return (
    <div class="action">
      {edited !== undefined && <p class="panel-fact">As edited. The effects below are those of the proposed script.</p>}
      <Script text={edited ?? command.script} doubts={edited === undefined ? command.doubts : []} />
      <dl class="action-facts">
        {command.description !== undefined && <Fact name="Description">“{escapeUntrusted(command.description)}”</Fact>}
        <Fact name="Effects">
          {command.effects.length === 0 && <span class="secondary">none known</span>}
          <ul>
            {command.effects.map((effect) => (
              <li key={effect.text} class={`effect ${effect.severity}`}>
                <span class="effect-kind">{effect.kind.replaceAll("_", " ")}</span>
                <span>{escapeUntrusted(effect.text)}</span>
              </li>
            ))}
          </ul>
        </Fact>
        {command.doubts.length > 0 && (
          <Fact name="Doubts">
            <ul>
              {command.doubts.map((doubt) => (
                <li key={doubt.text} class="doubt">
                  <Icon name="warning" small />
                  <span>{escapeUntrusted(doubt.text)}</span>
                </li>
              ))}
            </ul>
          </Fact>
        )}
        <Fact name="Syntax">
          <Syntax command={command} />
        </Fact>
        <Fact name="Dry run">
          <DryRunFact command={command} dryRun={dryRun} />
        </Fact>
      </dl>
    </div>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Lines of the script with numbers. The parts that cause a doubt are underlined. */
export function Script({ text, doubts }: { text: string; doubts: CommandView["doubts"] }) {
  const lines = text.replace(/\n$/, "").split("\n");
  const starts = lines.map((_, index) => lines.slice(0, index).reduce((sum, line) => sum + line.length + 1, 0));
  return (
    <ol class="script" aria-label="Script">
      {lines.map((line, index) => (
        <li key={index}>
          <code>{marked(line, starts[index] ?? 0, doubts)}</code>
        </li>
      ))}
    </ol>
  );
}

function marked(line: string, from: number, doubts: CommandView["doubts"]): ComponentChildren {
  const borders = new Set([0, line.length]);
  const inLine = doubts.filter((doubt) => (doubt.start ?? 0) < from + line.length && (doubt.end ?? 0) > from);
  for (const { start = 0, end = 0 } of inLine) {
    borders.add(Math.max(0, start - from)).add(Math.min(line.length, end - from));
  }
  const sorted = [...borders].sort((a, b) => a - b);
  return sorted.slice(0, -1).map((at, index) => {
    const text = escapeUntrustedLines(line.slice(at, sorted[index + 1]));
    const doubt = inLine.find(({ start = 0, end = 0 }) => start <= from + at && from + at < end);
    if (doubt === undefined) return text;
    return (
      <mark key={at} class="doubtful" title={doubt.text}>
        {text}
      </mark>
    );
  });
}

function Syntax({ command: { syntax } }: { command: CommandView }) {
  switch (syntax.result) {
    case "valid":
      return (
        <span class="state applied">
          <Icon name="applied" small />
          the shell finds no error
        </span>
      );
    case "invalid":
      return (
        <span class="state failed">
          <Icon name="failed" small />
          {syntax.line === undefined ? "" : `line ${syntax.line}: `}
          {escapeUntrusted(syntax.message)}
        </span>
      );
    case "unchecked":
      return <span class="secondary">not checked: {escapeUntrusted(syntax.message)}</span>;
  }
}

function DryRunFact({ command, dryRun }: { command: CommandView; dryRun: DryRun | undefined }) {
  if (command.dryRun.length === 0) return <span class="secondary">none for this command</span>;
  if (dryRun === undefined) {
    return (
      <span class="secondary">
        <code>{escapeUntrusted(command.dryRun.join(" "))}</code> can run first: <kbd>d</kbd>
      </span>
    );
  }
  if (dryRun.state === "running") return <span class="state running">running</span>;
  if (dryRun.result === undefined) return <span class="state failed">{escapeUntrusted(dryRun.error ?? "failed")}</span>;
  const { output, errors, end, truncated } = dryRun.result;
  return (
    <>
      <span class="secondary">
        {end}
        {truncated && ", output truncated"}
      </span>
      {output !== "" && <pre class="output">{escapeUntrustedLines(output)}</pre>}
      {errors !== "" && <pre class="output errors">{escapeUntrustedLines(errors)}</pre>}
    </>
  );
}
