import { render } from "preact";

import "./theme/tokens.css";
import "./theme/base.css";

const root = document.getElementById("app");
if (root) render(<main>sayso</main>, root);
