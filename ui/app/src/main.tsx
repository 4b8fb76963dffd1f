/** The app as the page of a browser. */

// Before the styles of the views, which refine these.
import "./theme/tokens.css";
import "./theme/base.css";

import { Surface_Kind } from "@sayso/client/proto/change";

import { mount } from "./mount.js";
import { browserAddressBar } from "./router.js";

const root = document.getElementById("app");
if (root) {
  mount(root, {
    transport: { baseUrl: window.location.origin },
    addressBar: browserAddressBar(window),
    surfaceName: /Firefox|Edg|Chrome|Safari/.exec(navigator.userAgent)?.[0].replace("Edg", "Edge") ?? "browser",
    surfaceKind: Surface_Kind.BROWSER,
  });
}
