import type { MessageInitShape } from "@bufbuild/protobuf";
import { useEffect, useMemo, useState } from "preact/hooks";

import { describeFailure } from "@sayso/client";
import type { DiffSubjectSchema, GetDiffResponse } from "@sayso/client/proto/review_service";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { fileOf, LAYOUTS, pageOf } from "./fromProtocol.js";
import { FullDiffView } from "./fullDiffView.js";
import type { FetchPage } from "./rows.js";
import { escapeUntrusted } from "./words.js";

export interface FullDiffProps {
  subject: MessageInitShape<typeof DiffSubjectSchema>;
  title: string;
  onClose: () => void;
  back?: { label: string; onClick: () => void };
}

/** Full diff of a subject, connected to the engine. */
export function FullDiff({ subject, title, onClose, back }: FullDiffProps) {
  const { api } = useApp();
  const [list, setList] = useState<GetDiffResponse>();
  const [problem, setProblem] = useState<string>();
  const [attempt, setAttempt] = useState(0);
  const key = JSON.stringify(subject, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
  useEffect(() => {
    const stop = new AbortController();
    setList(undefined);
    api.review
      .getDiff({ subject, rows: 1 }, { signal: stop.signal })
      .then((response) => {
        setList(response);
        setProblem(undefined);
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setProblem(describeFailure(error).message);
      });
    return () => stop.abort();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the key stands for the subject
  }, [api, key, attempt]);
  const fetchPage = useMemo(
    (): FetchPage => async (request) => {
      const response = await api.review.getDiff({
        subject,
        path: request.path,
        fromRow: BigInt(request.fromRow),
        rows: request.rows,
        layout: LAYOUTS[request.layout],
        wholeFile: request.wholeFile,
      });
      return pageOf(response, request.path);
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the key stands for the subject
    [api, key],
  );
  if (problem !== undefined) {
    return (
      <p class="load-problem" role="alert">
        {escapeUntrusted(problem)}
        <button type="button" class="button small" onClick={() => setAttempt(attempt + 1)}>
          Try again
        </button>
        <button type="button" class="button small" onClick={onClose}>
          Close
        </button>
      </p>
    );
  }
  if (list === undefined) {
    return (
      <p class="full-empty" role="status">
        Reading {title}…
      </p>
    );
  }
  return (
    <FullDiffView
      files={list.files.map(fileOf)}
      fetchPage={fetchPage}
      sides={sidesOf(subject)}
      onClose={onClose}
      back={back}
      announce={announce}
    />
  );
}

function sidesOf({ subject }: MessageInitShape<typeof DiffSubjectSchema>): { before: string; after: string } {
  switch (subject?.case) {
    case "change":
      return { before: "on disk", after: "proposed" };
    case "appliedChange":
    case "turn":
      return { before: "before the change", after: "as applied" };
    case "undo":
    case "redo":
    case "restore":
      return { before: "on disk", after: "afterwards" };
    case "request":
      return { before: "original", after: "edited" };
    default:
      return { before: "old", after: "new" };
  }
}
