import { useApp } from "../context.js";
import { RequestEditor } from "./editor.js";
import { RequestParts } from "./request-parts.js";

/** One request, as a page or in the drawer. */
export function RequestView({ request, isDrawer = false }: { request: bigint; isDrawer?: boolean }) {
  const { router } = useApp();
  const open = (number: bigint) => {
    if (isDrawer) router.show({ kind: "request", request: number });
    else router.go({ view: "request", request: number });
  };
  return (
    <>
      {!isDrawer && <RequestParts class="in-page" />}
      <RequestEditor key={String(request)} request={request} onOpen={open} />
    </>
  );
}
