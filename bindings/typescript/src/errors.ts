/** The one error of the package: what is wrong, where, and the way out. */

export class LogitreeError extends Error {
  /** What went wrong for the caller: "payload", "constraint", "library", "engine", ... */
  readonly kind: string;
  /** What is wrong, in one sentence: the message without place and help. */
  readonly reason: string;
  /** A JSON pointer, a symbol, a path; empty if there is no place. */
  readonly place: string;
  /** The way out; empty if there is none. */
  readonly help: string;

  constructor(kind: string, message: string, place = "", help = "") {
    super(message + (place && ` (at ${place})`) + (help && `; ${help}`));
    this.name = "LogitreeError";
    this.kind = kind;
    this.reason = message;
    this.place = place;
    this.help = help;
  }
}
