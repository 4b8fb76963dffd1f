export { createApi, type Api } from "./api.js";
export { sleep, systemClock, type Clock } from "./clock.js";
export {
  describeFailure,
  isCode,
  isDecisionForbidden,
  isLoginMissing,
  isUnimplemented,
  type Failure,
} from "./failure.js";
export { AgentLive, type LivePart } from "./store/agent.js";
export { BoundedMap } from "./store/bounded-map.js";
export { retryDelay, type Connection, type EngineInfo } from "./store/connection.js";
export { Conversation } from "./store/conversation.js";
export type { SessionInfo } from "./store/sessions.js";
export { Store, type StoreOptions } from "./store/store.js";
export type { Notice, TimelineEntry } from "./store/timeline.js";
export { createBrowserTransport, type TransportOptions } from "./transport.js";
