/* The token-trie sampler's own names, as elizaOS's design has them. logitree's library exports them; docs/c.md has the guide.

   A program that uses them links libllama, or has loaded it with RTLD_GLOBAL: its functions are found by their names. What went
   wrong is in logitree_error_message() of logitree.h, in the same thread. */

#ifndef ELIZA_TOKEN_TRIE_SAMPLER_H
#define ELIZA_TOKEN_TRIE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct llama_vocab;
struct llama_sampler;

/* The caller's own handle of a session. It is a key: what it leads to is never looked at. */
typedef void *FfiLlmHandle;

/* A sampler that leaves the tokens of a token tree, {"modelId": ..., "descriptors": [{"path": ..., "leaves": [{"name": ...,
   "tokens": [...]}]}]} with one descriptor: the logit of every other candidate becomes -inf. Mode 0: the likeliest is the only
   candidate that is left. Mode 1: the samplers that follow choose. After a leaf nothing is masked, until a reset. Its place is
   after penalties and temperature and before dist. The chain that takes it frees it. NULL after an error. */
struct llama_sampler *llama_sampler_init_token_trie(
    const struct llama_vocab *vocab,
    const char *trie_descriptor_json,
    int mode);

/* Sets the token tree of a handle, in place of a former one. A payload that cannot be read is an error of the sampler that is
   made of it. The payload is copied. */
void eliza_inference_set_token_trie(
    FfiLlmHandle handle,
    const char *trie_payload_json,
    size_t payload_len,
    int mode);

/* Ends the token tree of a handle, whatever was set before: back to the caller's grammar. To be called before the handle is
   closed, too. */
void eliza_inference_clear_token_trie(FfiLlmHandle handle);

/* What the code that generates asks: a new sampler of the token tree of a handle, for one generation; NULL and 0 if none is set.
   A status of logitree.h other than 0 after an error: nothing should be generated then. */
int32_t eliza_inference_token_trie_sampler(
    FfiLlmHandle handle,
    const struct llama_vocab *vocab,
    struct llama_sampler **sampler);

#ifdef __cplusplus
}
#endif

#endif /* ELIZA_TOKEN_TRIE_SAMPLER_H */
