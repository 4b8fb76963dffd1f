import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { announce } from "../announce.js";
import { useApp } from "../context.js";
import { conversationChoices, followTarget, type ConversationChoice } from "./follow.js";
import type { ModesModel } from "./modes-model.js";
import type { RequestList } from "./request-list.js";
import { requestPreferences } from "./request-preferences.js";

const FLASH = 600;
/** The request that was followed last, so that the frame of its editor flashes. */
let followed: bigint | null = null;

/** Choices of the conversation picker. With auto-follow, each newly paused request is shown. */
export function useFollowing(
  models: { modes: ModesModel; list: RequestList },
  present: bigint | null,
  onFollow: (request: bigint) => void,
): { choices: ConversationChoice[]; isFlashing: boolean } {
  const { store } = useApp();
  const followRef = useRef(onFollow);
  useLayoutEffect(() => {
    followRef.current = onFollow;
  });
  const held = models.list.held.value;
  const beforeRef = useRef<readonly bigint[] | null>(null);
  const [isFlashing, setFlashing] = useState(false);
  const isFollowing = requestPreferences.autoFollow.value;
  const isReady = models.list.state.value === "ready";
  useEffect(() => {
    if (!isReady) return;
    const known = beforeRef.current ?? (present === null ? [] : held);
    beforeRef.current = held;
    const target = followTarget({ isFollowing, present, before: known, held });
    if (target === null) return;
    followed = target;
    announce(`Now showing request ${target}`);
    followRef.current(target);
  }, [held, isFollowing, present, isReady]);
  useEffect(() => {
    if (present === null || followed !== present) return undefined;
    followed = null;
    setFlashing(true);
    const timer = setTimeout(() => setFlashing(false), FLASH);
    return () => clearTimeout(timer);
  }, [present]);
  const requests = [...models.list.numbers.value, ...held, ...(present === null ? [] : [present])].flatMap((number) => {
    const request = store.request(number).value;
    return request ? [request] : [];
  });
  const sessions = store.sessions.all.value;
  const choices = conversationChoices(
    models.modes.modes.value?.sessions ?? [],
    requests,
    (session) => sessions.get(session)?.title,
  );
  const titled = choices
    .slice(0, 10)
    .map(({ session }) => session)
    .join("\n");
  useEffect(() => {
    for (const session of titled.split("\n")) store.loadTitle(session);
  }, [store, titled]);
  return { choices, isFlashing };
}
