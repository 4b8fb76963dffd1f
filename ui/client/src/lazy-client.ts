import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";

/**
 * A client whose service description loads with the first call, so that it is no part of the first page.
 *
 * A call returns an object that is a promise, for methods with one response, and an async iterable, for those with a stream.
 */
export function lazyClient<Service extends DescService>(load: () => Promise<Client<Service>>): Client<Service> {
  let loading: Promise<Client<Service>> | null = null;
  const client = (): Promise<Client<Service>> => {
    loading ??= load().catch((error: unknown) => {
      // The next call tries again.
      loading = null;
      throw error;
    });
    return loading;
  };
  type Method = (request: unknown, options?: unknown) => Promise<unknown> & AsyncIterable<unknown>;
  const call =
    (name: string): Method =>
    (request, options) => {
      const invoke = async () => {
        const methods = (await client()) as unknown as Record<string, Method>;
        const method = methods[name];
        if (!method) throw new Error(`the service has no method ${name}`);
        // In an object, because an async function would resolve the promise itself.
        return { result: method(request, options) };
      };
      const answer = () => invoke().then(({ result }) => result);
      return {
        [Symbol.toStringTag]: "LazyCall",
        then: (resolve, reject) => answer().then(resolve, reject),
        catch: (reject) => answer().catch(reject),
        finally: (callback) => answer().finally(callback),
        async *[Symbol.asyncIterator]() {
          yield* (await invoke()).result;
        },
      };
    };
  return new Proxy({} as Client<Service>, {
    get: (_, name) => (typeof name === "string" && name !== "then" ? call(name) : undefined),
  });
}
