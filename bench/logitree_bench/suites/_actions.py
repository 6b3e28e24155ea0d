"""What the suites choose among: 30 actions of a chat agent, and 10 requests to it."""

from __future__ import annotations

ACTIONS = (
    "ADD_CONTACT",
    "ANALYZE_IMAGE",
    "BLOCK_USER",
    "CANCEL_REMINDER",
    "CHOOSE_OPTION",
    "CREATE_POLL",
    "CREATE_REMINDER",
    "DELETE_MESSAGE",
    "EDIT_MESSAGE",
    "FOLLOW_ROOM",
    "GENERATE_IMAGE",
    "IGNORE",
    "JOIN_VOICE_CHANNEL",
    "LEAVE_VOICE_CHANNEL",
    "MUTE_ROOM",
    "NONE",
    "PIN_MESSAGE",
    "PLAY_MUSIC",
    "REMOVE_CONTACT",
    "REPLY",
    "REPLY_THREAD",
    "SCHEDULE_MEETING",
    "SEARCH_MESSAGES",
    "SEARCH_WEB",
    "SEND_FILE",
    "SEND_MESSAGE",
    "SUMMARIZE_CONVERSATION",
    "TRANSCRIBE_AUDIO",
    "UPDATE_CONTACT",
    "UPDATE_SETTINGS",
)
"""REPLY is a prefix of REPLY_THREAD: deciding whether to end or continue is part of the task."""

REQUESTS = (
    "Play some jazz music.",
    "Create a reminder for tomorrow at nine: water the plants.",
    "Search the web for the capital of Mongolia.",
    "Send Anna a message that I will be late.",
    "Generate an image of a lighthouse in a storm.",
    "Mute this room, it is too loud.",
    "Summarize what we talked about yesterday.",
    "Update the contact of Tom, he has a new number.",
    "Create a poll: Friday or Saturday?",
    "Reply to Lena in the thread about the budget.",
)


EXAMPLES = (
    ("Turn the volume of this room off.", "MUTE_ROOM"),
    ("Play the new album by Björk.", "PLAY_MUSIC"),
    ("Save Mia's new address.", "UPDATE_CONTACT"),
    ("Wake me at seven.", "CREATE_REMINDER"),
    ("Write to Paul that dinner is ready.", "SEND_MESSAGE"),
    ("Find out online who won the match.", "SEARCH_WEB"),
    ("Paint a red boat.", "GENERATE_IMAGE"),
    ("Give me the short version of this morning.", "SUMMARIZE_CONVERSATION"),
    ("Ask everyone which day suits them.", "CREATE_POLL"),
    ("Tell them in the thread that it works.", "REPLY_THREAD"),
)


def prompt(request: str) -> str:
    """The text after which a model writes the name of an action for the request, without a chat template."""
    head = f"One action for each request.\nActions: {', '.join(ACTIONS)}.\n\n"
    shown = "".join(f"Request: {asked}\nAction:\n{action}\n\n" for asked, action in EXAMPLES)
    return f"{head}{shown}Request: {request}\nAction:\n"
