/** logitree for TypeScript: payloads of token trees, llama.cpp generation under them, and chains of samplers. */

export * from "./candidates.js";
export * from "./chain.js";
export * from "./codec.js";
export * from "./descriptor.js";
export * from "./elizaos.js";
export * from "./errors.js";
export * from "./fallback.js";
export * from "./filters.js";
export { ABI_VERSION } from "./functions.js";
export * from "./history.js";
export * from "./llama.js";
export * from "./metrics.js";
export * from "./native.js";
export * from "./random.js";
export * from "./samplers.js";
export * from "./strategy.js";
export * from "./trie.js";
export * from "./types.js";
