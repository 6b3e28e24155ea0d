/* Chooses an action with llama.cpp and a token tree: libllama is loaded at run time, logitree is a link of its sampler chain.

       cc token_tree.c $(pkg-config --cflags --libs logitree) -I<llama.cpp's include folders> -ldl -o token_tree
       ./token_tree libllama.so model.gguf "Request: Send Anna the picture of the cat." REPLY SEND_MESSAGE SEND_FILE

   With llama-cpp-python, the library is llama_cpp/lib/libllama.so, and the headers are in the folder include beside it
   (site-packages/include); docs/c.md has the commands. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llama.h>
#include <logitree.h>

enum { MAX_TOKENS = 512, MAX_FORM = 1 << 16, MAX_PIECE = 256 };

/* The functions of libllama that the example uses, by their names. */
#define FUNCTIONS(use) \
    use(llama_backend_init) use(llama_log_set) use(llama_model_default_params) use(llama_model_load_from_file) \
    use(llama_model_get_vocab) use(llama_model_free) use(llama_context_default_params) use(llama_init_from_model) \
    use(llama_free) use(llama_tokenize) use(llama_token_to_piece) use(llama_vocab_is_eog) use(llama_batch_get_one) \
    use(llama_decode) use(llama_sampler_chain_default_params) use(llama_sampler_chain_init) \
    use(llama_sampler_chain_add) use(llama_sampler_init_temp) use(llama_sampler_sample) use(llama_sampler_init) \
    use(llama_sampler_name) use(llama_sampler_accept) use(llama_sampler_apply) use(llama_sampler_reset) \
    use(llama_sampler_clone) use(llama_sampler_free)

static struct {
#define FIELD(name) __typeof__(&name) name;
    FUNCTIONS(FIELD)
} lib;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(logitree_status status, const char *what) {
    if (status == LOGITREE_OK) return;
    fprintf(stderr, "%s: %s (at %s); %s\n", what, logitree_error_message(), logitree_error_place(), logitree_error_help());
    exit(1);
}

/* dlsym gives a pointer to data; POSIX says that it may be used as a pointer to a function. */
static void load(const char *path) {
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) fail(path, dlerror());
    void *found;
#define LOAD(name) \
    found = dlsym(opened, #name); \
    if (found == NULL) fail(path, "there is no function " #name); \
    memcpy(&lib.name, &found, sizeof found);
    FUNCTIONS(LOAD)
}

static void silent(enum ggml_log_level level, const char *text, void *data) {
    (void)level, (void)text, (void)data;
}

/* The constraint: each action with its own tokens, {"type": "token_tree", "payload": {"descriptors": [{"path": "action", "leaves":
   [...]}]}}. Actions are plain names here; others must be written as JSON strings. */
static void write_form(const struct llama_vocab *vocab, char **actions, int count, char *out) {
    llama_token tokens[64];
    int at = sprintf(out, "{\"type\": \"token_tree\", \"payload\": {\"descriptors\": [{\"path\": \"action\", \"leaves\": [");
    for (int i = 0; i < count; i++) {
        int n = lib.llama_tokenize(vocab, actions[i], (int)strlen(actions[i]), tokens, 64, false, false);
        if (n < 1 || at > MAX_FORM - 4096 || strlen(actions[i]) > 1024) fail("an action is too long", actions[i]);
        at += sprintf(out + at, "%s{\"name\": \"%s\", \"tokens\": [", i ? ", " : "", actions[i]);
        for (int k = 0; k < n; k++) at += sprintf(out + at, "%s%d", k ? ", " : "", (int)tokens[k]);
        at += sprintf(out + at, "]}");
    }
    sprintf(out + at, "]}]}}");
}

/* The sampler of the token tree, in mode 0: the likeliest of the valid tokens. */
static struct llama_sampler *token_tree(const char *model, const char *form, logitree_llama_record **record) {
    logitree_llama_library functions = LOGITREE_LLAMA_LIBRARY_INIT;
    functions.token_data_size = sizeof(llama_token_data);
    functions.token_data_array_size = sizeof(llama_token_data_array);
#define GIVE(name) memcpy(&functions.name, &lib.llama_##name, sizeof functions.name);
    GIVE(sampler_init) GIVE(sampler_name) GIVE(sampler_accept) GIVE(sampler_apply)
    GIVE(sampler_reset) GIVE(sampler_clone) GIVE(sampler_free)

    logitree_vocabulary *vocabulary = NULL;
    logitree_constraint *constraint = NULL;
    logitree_matcher *matcher = NULL;
    void *sampler = NULL;
    check(logitree_vocabulary_from_file("gguf", model, &vocabulary), "vocabulary");
    check(logitree_constraint_from_json(form, LOGITREE_NUL_TERMINATED, vocabulary, &constraint), "tree");
    check(logitree_matcher_new(constraint, vocabulary, &matcher), "matcher");
    check(logitree_llama_sampler(&functions, vocabulary, matcher, NULL, NULL, 0, &sampler, record), "sampler");
    logitree_free(matcher);
    logitree_free(constraint);
    logitree_free(vocabulary);
    return sampler;
}

int main(int argc, char **argv) {
    if (argc < 5) fail(argv[0], "LIBRARY MODEL PROMPT ACTION...");
    load(argv[1]);
    lib.llama_log_set(silent, NULL);
    lib.llama_backend_init();
    struct llama_model *model = lib.llama_model_load_from_file(argv[2], lib.llama_model_default_params());
    if (model == NULL) fail(argv[2], "llama.cpp cannot load it");
    struct llama_context_params params = lib.llama_context_default_params();
    params.n_ctx = 512;
    struct llama_context *context = lib.llama_init_from_model(model, params);
    if (context == NULL) fail(argv[2], "llama.cpp cannot run it");
    const struct llama_vocab *vocab = lib.llama_model_get_vocab(model);

    static char form[MAX_FORM], prompt[4096];
    write_form(vocab, argv + 4, argc - 4, form);
    logitree_llama_record *record = NULL;
    struct llama_sampler *chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params());
    lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_temp(0.8f));
    lib.llama_sampler_chain_add(chain, token_tree(argv[2], form, &record));

    llama_token tokens[MAX_TOKENS];
    snprintf(prompt, sizeof prompt, "%s\nAction:\n", argv[3]);
    int n = lib.llama_tokenize(vocab, prompt, (int)strlen(prompt), tokens, MAX_TOKENS, true, true);
    if (n < 1) fail("the prompt is too long", argv[3]);
    struct llama_batch batch = lib.llama_batch_get_one(tokens, n);
    for (int steps = 0; steps < 32; steps++) {
        if (lib.llama_decode(context, batch) != 0) fail(argv[2], "llama.cpp failed");
        llama_token token = lib.llama_sampler_sample(chain, context, -1);
        if (lib.llama_vocab_is_eog(vocab, token)) break;
        char piece[MAX_PIECE];
        int length = lib.llama_token_to_piece(vocab, token, piece, MAX_PIECE, 0, false);
        printf("%.*s", length > 0 ? length : 0, piece);
        tokens[0] = token;
        batch = lib.llama_batch_get_one(tokens, 1);
    }
    unsigned char counts[256];
    size_t length = 0;
    check(logitree_llama_record_check(record), "generation");
    check(logitree_describe(record, counts, sizeof counts, &length), "counts");
    printf("\n%.*s\n", (int)length, (char *)counts);
    logitree_free(record);
    lib.llama_sampler_free(chain);
    lib.llama_free(context);
    lib.llama_model_free(model);
    return logitree_live_handles() == 0 ? 0 : 1;
}
