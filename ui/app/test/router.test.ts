import { expect, test } from "vitest";

import { createRouter, formatDrawer, formatRoute, parseDrawer, parseRoute } from "../src/router.js";

test.each([
  "/",
  "/session/3f2a",
  "/session/a%2Fb%20c",
  "/change/12",
  "/request/7",
  "/turn/s1/t%2F1",
  "/history",
  "/requests",
  "/sessions",
])("route_of_%s_keeps_its_path", (path) => {
  expect(parseRoute(path).view).not.toBe("unknown");
  expect(formatRoute(parseRoute(path))).toBe(path);
});

test.each(["/change/0", "/change/x", "/request/-1", "/login", "/change/1e3"])("path_%s_is_unknown", (path) => {
  expect(parseRoute(path).view).toBe("unknown");
});

test.each(["?show=diff:3", "?show=request:9", "?show=todos", "?show=history"])("drawer_%s_keeps_its_query", (query) => {
  expect(formatDrawer(parseDrawer(query))).toBe(query);
});

test("broken_escape_is_no_session", () => {
  expect(parseRoute("/session/%E0%A4%A").view).toBe("sessions");
});

test("drawer_of_turn_keeps_session_and_turn", () => {
  const drawer = { kind: "turn-diff", session: "a:b", turn: "t/1" } as const;
  expect(parseDrawer(formatDrawer(drawer))).toEqual(drawer);
});

test("router_follows_back_button", () => {
  let url = "/history";
  let goBack = () => undefined as unknown;
  const router = createRouter({
    read: () => ({ path: url.split("?")[0] ?? "", query: url.slice(url.indexOf("?") + 1) }),
    push: (next) => (url = next),
    onChange: (callback) => (goBack = callback),
  });
  router.go({ view: "session", session: "s1" });
  expect(url).toBe("/session/s1");
  router.show({ kind: "todos" });
  expect(url).toBe("/session/s1?show=todos");
  url = "/history";
  goBack();
  expect(router.location.value.route).toEqual({ view: "history" });
});
