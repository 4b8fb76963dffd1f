if (role === "user") {
  allow()
}
