/** Components that are not a part of the first load. */

import { lazy } from "./lazy.js";

export const StreamView = lazy(async () => (await import("./stream/stream-view.js")).StreamView);
export const ChangeView = lazy(async () => (await import("./change-view.js")).ChangeView);
export const ReviewPanel = lazy(async () => (await import("./review/panel.js")).ReviewPanel);
export const InlineDiff = lazy(async () => (await import("./diff/inline.js")).InlineDiff);
export const FullDiff = lazy(async () => (await import("./diff/full.js")).FullDiff);
export const Markdown = lazy(async () => (await import("./stream/markdown.js")).Markdown);
export const HistoryView = lazy(async () => (await import("./history/history-view.js")).HistoryView);
export const ReversalDialog = lazy(async () => (await import("./history/reversal-dialog.js")).ReversalDialog);
export const KeysDialog = lazy(async () => (await import("./shell/keys-dialog.js")).KeysDialog);
export const NewSessionDialog = lazy(async () => (await import("./shell/new-session.js")).NewSessionDialog);
export const Composer = lazy(async () => (await import("./composer/composer.js")).Composer);
export const BuiltInComposer = lazy(async () => (await import("./composer/built-in.js")).BuiltInComposer);
export const TodosPane = lazy(async () => (await import("./composer/todos.js")).TodosPane);
export const RequestsView = lazy(async () => (await import("./request/requests-page.js")).RequestsView);
export const RequestView = lazy(async () => (await import("./request/drawer-view.js")).RequestView);
export const SessionsView = lazy(async () => (await import("./session/sessions-view.js")).SessionsView);
export const SubagentMonitor = lazy(async () => (await import("./request/subagent-monitor.js")).SubagentMonitor);
