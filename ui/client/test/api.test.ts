import { createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";

import { createApi } from "../src/index.js";
import { ReviewService } from "../src/generated/sayso/v1/review_service_pb.js";

test("status_call_returns_answer_of_engine", async () => {
  const transport = createRouterTransport(({ service }) => {
    service(ReviewService, { status: () => ({ version: "1.2.3" }) });
  });
  const status = await createApi(transport).review.status({});
  expect(status.version).toBe("1.2.3");
});
