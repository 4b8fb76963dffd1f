import { createClient, type Client, type Transport } from "@connectrpc/connect";

import type { AgentService } from "./generated/sayso/v1/agent_service_pb.js";
import { ConversationService } from "./generated/sayso/v1/conversation_service_pb.js";
import type { RequestService } from "./generated/sayso/v1/request_service_pb.js";
import { ReviewService } from "./generated/sayso/v1/review_service_pb.js";
import type { WorkspaceService } from "./generated/sayso/v1/workspace_service_pb.js";
import { lazyClient } from "./lazy-client.js";

/** One typed client for each service that a surface calls. */
export interface Api {
  review: Client<typeof ReviewService>;
  conversation: Client<typeof ConversationService>;
  requests: Client<typeof RequestService>;
  agent: Client<typeof AgentService>;
  workspace: Client<typeof WorkspaceService>;
}

export function createApi(transport: Transport): Api {
  return {
    review: createClient(ReviewService, transport),
    conversation: createClient(ConversationService, transport),
    requests: lazyClient(async () =>
      createClient((await import("./generated/sayso/v1/request_service_pb.js")).RequestService, transport),
    ),
    agent: lazyClient(async () =>
      createClient((await import("./generated/sayso/v1/agent_service_pb.js")).AgentService, transport),
    ),
    workspace: lazyClient(async () =>
      createClient((await import("./generated/sayso/v1/workspace_service_pb.js")).WorkspaceService, transport),
    ),
  };
}
