import { describeFailure } from "@sayso/client";
import type { InboxItem } from "@sayso/client/proto/inbox";

import { announce } from "../announce.js";
import type { AppContext } from "../context.js";
import { preferences } from "../preferences.js";

/** Opens what waits where it is decided: a change and a turn in the stream of their session, a request in its view. */
export async function openInboxItem({ api, router }: AppContext, item: InboxItem): Promise<void> {
  const session = item.session ?? "";
  switch (item.subject.case) {
    case "request":
      router.go({ view: "request", request: item.subject.value.request });
      return;
    case "turn": {
      router.go({ view: "session", session });
      try {
        const { turn } = item.subject.value;
        const { details } = await api.review.reviewTurn({ session, turn });
        if (details?.change) preferences.scrollToChange.value = details.change.change;
      } catch (error) {
        announce(`The review cannot be opened: ${describeFailure(error).message}`);
      }
      return;
    }
    case "change":
      router.go({ view: "session", session });
      preferences.scrollToChange.value = item.subject.value.change;
      return;
    case undefined:
  }
}
