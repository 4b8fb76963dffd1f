import { Code, ConnectError } from "@connectrpc/connect";

import { ErrorDetailSchema, ErrorKind } from "./generated/sayso/v1/error_pb.js";

/** A failed call, ready for display. */
export interface Failure {
  message: string;
  /** The remedy. `null` if there is none. */
  hint: string | null;
  kind: ErrorKind;
  code: Code;
}

/** Describes an error of a call. */
export function describeFailure(error: unknown): Failure {
  const known = ConnectError.from(error);
  const [detail] = known.findDetails(ErrorDetailSchema);
  return {
    message: detail?.message ?? known.rawMessage,
    hint: detail?.hint ?? null,
    kind: detail?.kind ?? ErrorKind.UNSPECIFIED,
    code: known.code,
  };
}

export const isCode = (error: unknown, code: Code): boolean => error instanceof ConnectError && error.code === code;

/** The engine does not know the login: it is missing, or of an engine that has ended. */
export const isLoginMissing = (error: unknown): boolean => isCode(error, Code.Unauthenticated);

/** The caller may read, but not decide. */
export const isDecisionForbidden = (error: unknown): boolean => isCode(error, Code.PermissionDenied);

/** The engine has no such method, because its version is older or the part is not built. */
export const isUnimplemented = (error: unknown): boolean => isCode(error, Code.Unimplemented);
