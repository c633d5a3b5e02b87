//! Chat templates: takes a template's source and messages, gives the prompt. Must not know
//! any vocabulary but to guard against its control tokens.
