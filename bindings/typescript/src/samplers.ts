/** The samplers of a chain, by name and parameters: docs/samplers.md has them all. */

/** A number, or a bigint where 53 bits are too few. */
export type Whole = number | bigint;

/** A sampler, as the C library takes it: its name, and parameters by their names. */
export interface SamplerForm {
  name: string;
  [parameter: string]: unknown;
}

/** What a sampler draws from. */
export interface SeedOptions {
  /** A fresh seed if left out. */
  seed?: Whole;
  /** llama.cpp's generator if left out, which takes seeds of 32 bits; the others take 64. */
  rng?: "mt19937" | "xoroshiro128plus" | "philox";
  /** Which of many sequences of one seed. */
  sequence?: Whole;
}

/** Any sampler of the table, such as `sampler("xtc", {p: 0.5, t: 0.1})`. */
export function sampler(name: string, parameters: Record<string, unknown> = {}): SamplerForm {
  return { ...parameters, name };
}

/** Penalties over the last accepted tokens. */
export function penalties(lastN = 64, repeat = 1, freq = 0, present = 0): SamplerForm {
  return { name: "penalties", last_n: lastN, repeat, freq, present };
}

/** The k best candidates, sorted; all of them, as they are, for 0. */
export function topK(k: number): SamplerForm {
  return { name: "top_k", k };
}

/** The smallest set of best candidates that has the probability p. */
export function topP(p: number, minKeep = 0): SamplerForm {
  return { name: "top_p", p, min_keep: minKeep };
}

/** Candidates whose probability is at least p times the best one's. */
export function minP(p: number, minKeep = 0): SamplerForm {
  return { name: "min_p", p, min_keep: minKeep };
}

/** Candidates of locally typical surprisal, up to the probability p. */
export function typicalP(p: number, minKeep = 0): SamplerForm {
  return { name: "typ_p", p, min_keep: minKeep };
}

/** Candidates within n standard deviations of the best logit. */
export function topNSigma(n: number): SamplerForm {
  return { name: "top_n_sigma", n };
}

/** Divides the logits; 0 leaves the best candidate alone. */
export function temperature(t: number): SamplerForm {
  return { name: "temp", t };
}

/** Selects the first best candidate. */
export function greedySampler(): SamplerForm {
  return { name: "greedy" };
}

/** Draws by probability; selects. */
export function dist(options: SeedOptions = {}): SamplerForm {
  return { name: "dist", ...options };
}
