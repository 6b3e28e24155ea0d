"""The protocols, one entry for each form. Facts are from the models' chat templates and from OpenAI's Harmony guide."""

from __future__ import annotations

from dataclasses import replace

from ._protocol import Block, Calls, Pairs, Protocol

_THINK = Block("<think>", "</think>", "\n\n")
_THINK_CLOSE = Block("<think>", "</think>")
_KIMI = (
    "<think>",
    "</think>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
)
_HARMONY = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>")
_INKLING = (
    "<|message_model|>",
    "<|content_thinking|>",
    "<|content_text|>",
    "<|content_invoke_tool_json|>",
    "<|end_message|>",
)
_ATEM_END = "</atem:invoke>\n</atem:function_calls>"
_RESPONSE = Block("<|open|>response<|sep|>", "<|close|>response<|sep|>")
_TO = "<|channel|>commentary to=functions."
_ROLE_TO = " to=functions."

_TAGS = Calls("<tool_call>", '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", separator="\n")
_LIST = Calls("[TOOL_CALLS]", '{"name": "', '", "arguments": ', "}", begin="[TOOL_CALLS][", separator=", ", end="]")
_PLUGIN = '<|action_start|><|plugin|>\n{"name": "'
_PYTHON = Calls("[", "", "(", ")", begin="[", separator=", ", end="]", keywords=True, unmarked=True)
_GLM_PAIRS = Pairs("<arg_key>", "</arg_key><arg_value>", "</arg_value>")
_INVOKES = Calls(
    trigger="<minimax:tool_call>",
    begin="<minimax:tool_call>\n",
    head='<invoke name="',
    middle='">\n',
    tail="</invoke>\n",
    end="</minimax:tool_call>",
    pairs=Pairs('<parameter name="', '">', "</parameter>\n"),
)
_WITH_ID = (', "id": "{id}"}',)
_WITH_ID_9 = (', "id": "{id9}"}',)
_DEEPSEEK = Calls(
    trigger="<｜tool▁calls▁begin｜>",
    begin="<｜tool▁calls▁begin｜>",
    head="<｜tool▁call▁begin｜>",
    middle="<｜tool▁sep｜>",
    tail="<｜tool▁call▁end｜>",
    end="<｜tool▁calls▁end｜>",
)

_QWEN3 = Protocol(
    name="qwen3",
    models=("Qwen3", "Qwen3-Next", "QwQ"),
    markers=("<think>", "</think>", "<tool_call>", "</tool_call>"),
    reasoning=_THINK,
    calls=_TAGS,
    turn_end=("<|im_end|>", "<|endoftext|>"),
    template=(("<tool_call>", "<think>", "<|im_start|>"), ("<tool_call>", "</think>", "<|im_start|>")),
    tokens=(("<tool_call>", "<think>", "<|im_start|>"),),
)
_MISTRAL = Protocol(
    name="mistral",
    models=("Mistral 7B v0.3", "Mixtral 8x22B", "Mistral Nemo", "Mistral Large 2407", "tokenizers v2 to v7"),
    markers=("[TOOL_CALLS]",),
    calls=replace(_LIST, tails=_WITH_ID_9),
    template=(("[TOOL_CALLS]",),),
    tokens=(("[TOOL_CALLS]",),),
)
_MISTRAL_ARGS = replace(
    _MISTRAL,
    name="mistral_args",
    models=("Mistral Small 3.2", "Magistral", "Devstral", "Ministral 3", "tokenizers v13 and later"),
    markers=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]"),
    reasoning=Block("[THINK]", "[/THINK]"),
    calls=Calls(
        trigger="[TOOL_CALLS]",
        head="[TOOL_CALLS]",
        middle="[ARGS]",
        tail="",
        also=(("[TOOL_CALLS]", "[CALL_ID]{id9}[ARGS]"), ("[TOOL_CALLS]", "")),
    ),
    template=(("[TOOL_CALLS]", "[ARGS]"),),
    tokens=(("[TOOL_CALLS]", "[ARGS]"),),
)
_GRANITE_3 = replace(
    _MISTRAL,
    name="granite_3",
    models=("Granite 3.0 to 3.3",),
    markers=("<|tool_call|>",),
    calls=replace(_LIST, trigger="<|tool_call|>", begin="<|tool_call|>["),
    turn_end=("<|end_of_text|>",),
    template=(("<|tool_call|>",), ("<|start_of_role|>",)),
    tokens=(("<|tool_call|>", "<|start_of_role|>"),),
)
_DEEPSEEK_V3_1 = Protocol(
    name="deepseek_v3_1",
    models=("DeepSeek V3.1", "DeepSeek V3.2-Exp"),
    markers=(
        "<think>",
        "</think>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁sep｜>",
    ),
    reasoning=_THINK_CLOSE,
    calls=_DEEPSEEK,
    turn_end=("<｜end▁of▁sentence｜>",),
    template=(("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"),),
    tokens=(("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"),),
)
_GLM_4_7 = Protocol(
    name="glm_4_7",
    models=("GLM-4.7", "GLM-5"),
    markers=(*_QWEN3.markers, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    reasoning=_THINK_CLOSE,
    calls=Calls(
        trigger="<tool_call>",
        head="<tool_call>",
        middle="",
        tail="</tool_call>",
        pairs=_GLM_PAIRS,
    ),
    turn_end=("<|user|>", "<|observation|>", "<|endoftext|>"),
    template=(("<arg_key>", "</arg_key><arg_value>"),),
    tokens=(("<arg_key>", "<arg_value>"),),
)


def _elements(form: str, *more: str) -> tuple[str, ...]:
    """The markers that begin and end the elements of a turn: `form` has the place of their words."""
    words = ("think", "tool_calls", "tool_call", "arg_key", "arg_value", *more)
    return tuple(f"<{slash}{form.format(word)}>" for word in words for slash in ("", "/"))


def _plamo(word: str) -> Block:
    """An element of PLaMo's, whose markers are three tokens each or more."""
    return Block(f"<|plamo:begin_{word}:plamo|>", f"<|plamo:end_{word}:plamo|>")


def _dsml(name: str, models: tuple[str, ...], calls: str, invoke: str, parameter: str) -> Protocol:
    """DeepSeek's markup of calls, whose words differ between versions."""
    dsml = "｜DSML｜"
    return replace(
        _DEEPSEEK_V3_1,
        name=name,
        models=models,
        markers=("<think>", "</think>", dsml),
        calls=Calls(
            trigger=f"<{dsml}{calls}>",
            before="\n\n",
            begin=f"<{dsml}{calls}>\n",
            head=f'<{dsml}{invoke} name="',
            middle='">\n',
            tail=f"</{dsml}{invoke}>\n",
            end=f"</{dsml}{calls}>",
            pairs=Pairs(
                f'<{dsml}{parameter} name="', '" string="false">', f"</{dsml}{parameter}>\n", '" string="true">'
            ),
        ),
        template=((dsml, f"{calls}>"),),
        tokens=((dsml, "<think>", "</think>"),),
    )


PROTOCOLS: tuple[Protocol, ...] = (
    Protocol(
        name="harmony",
        models=("gpt-oss",),
        markers=_HARMONY,
        reasoning=Block("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant"),
        content=(
            Block("<|channel|>final<|message|>", "<|return|>"),
            Block("<|channel|>commentary<|message|>", "<|end|>", "<|start|>assistant"),
        ),
        calls=Calls(
            trigger=_TO,
            head=_TO,
            middle=" <|constrain|>json<|message|>",
            tail="<|call|>",
            also=(
                (_TO, "<|message|>"),
                (_TO, " json<|message|>"),
                (_TO, " code<|message|>"),
                (_ROLE_TO, "<|channel|>commentary <|constrain|>json<|message|>"),
                (_ROLE_TO, "<|channel|>commentary json<|message|>"),
                (_ROLE_TO, "<|channel|>commentary<|message|>"),
                (_ROLE_TO, "<|channel|>analysis <|constrain|>json<|message|>"),
            ),
        ),
        joint="<|start|>assistant",
        turn_end=("<|return|>", "<|call|>"),
        template=(("<|channel|>", "<|message|>"),),
        tokens=(("<|channel|>", "<|message|>", "<|constrain|>"),),
    ),
    Protocol(
        name="inkling",
        models=("Inkling",),
        markers=_INKLING,
        reasoning=Block("<|content_thinking|>", "<|end_message|>", "<|message_model|>"),
        content=(
            Block("<|content_text|>", "<|end_message|>"),
            Block("<|content_text|>", "<|end_message|>", "<|message_model|>"),
        ),
        calls=Calls(
            trigger="<|content_invoke_tool_json|>",
            head='<|content_invoke_tool_json|>{"name":"',
            middle='","args":',
            tail="}<|end_message|>",
            also=(("", '<|content_invoke_tool_json|>{"name":"{name}","args":'),),
        ),
        joint="<|message_model|>",
        turn_end=("<|content_model_end_sampling|>",),
        template=(("<|content_invoke_tool_json|>",),),
        tokens=(("<|content_invoke_tool_json|>", "<|end_message|>"),),
    ),
    Protocol(
        name="kimi_k3",
        models=("Kimi K3",),
        markers=("<|open|>", "<|close|>", "<|sep|>"),
        reasoning=Block("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        content=(_RESPONSE, _RESPONSE),
        calls=Calls(
            trigger="<|open|>tools<|sep|>",
            begin="<|open|>tools<|sep|>",
            head='<|open|>call tool="',
            middle='" index="{number}"<|sep|>',
            tail="<|close|>call<|sep|>",
            end="<|close|>tools<|sep|>",
            prefix=_RESPONSE.begin + _RESPONSE.end,
            pairs=Pairs('<|open|>argument key="', '" type="{type}"<|sep|>', "<|close|>argument<|sep|>"),
        ),
        frame=Block("", "<|close|>message<|sep|>"),
        turn_end=("<|end_of_msg|>",),
        template=(("<|open|>", "<|sep|>"),),
        tokens=(("<|open|>", "<|close|>", "<|sep|>"),),
    ),
    Protocol(
        name="plamo_3",
        models=("PLaMo 3",),
        markers=("<|plamo:begin_", "<|plamo:end_", ":plamo|>", "<|plamo:constrain|>", "<|plamo:msg|>"),
        reasoning=_plamo("think"),
        calls=Calls(
            trigger=_plamo("tool_requests").begin,
            begin=_plamo("tool_requests").begin,
            head=_plamo("tool_request").begin + _plamo("tool_name").begin,
            middle=_plamo("tool_name").end + _plamo("tool_arguments").begin + "<|plamo:constrain|>json<|plamo:msg|>",
            tail=_plamo("tool_arguments").end + _plamo("tool_request").end,
            end=_plamo("tool_requests").end,
        ),
        turn_end=("<|plamo:tag|>",),
        template=(("begin_tool_requests", "<|plamo:"),),
        tokens=(("<|plamo:begin_", "<|plamo:end_", ":plamo|>"),),
    ),
    Protocol(
        name="muse_glimmer",
        models=("Muse Glimmer",),
        markers=("<|start|>", "<|message|>", "<|eom|>"),
        reasoning=Block(" to=self<|message|>", "<|eom|>", "<|start|>assistant"),
        content=(
            Block(" to=user<|message|>", "<|eot|>"),
            Block(" to=user<|message|>", "<|eom|>", "<|start|>assistant"),
        ),
        calls=Calls(
            trigger=" to=",
            head=" to=",
            middle='<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n',
            tail=_ATEM_END + "<|eom|>",
            tails=(_ATEM_END + "<|eot|>",),
            pairs=Pairs('<atem:parameter name="', '">', "</atem:parameter>\n"),
        ),
        joint="<|start|>assistant",
        turn_end=("<|eot|>",),
        template=(("<atem:invoke", "to=self"),),
        tokens=(("<|message|>", "<|eom|>", "<|eot|>"),),
    ),
    _MISTRAL_ARGS,
    replace(
        _MISTRAL_ARGS,
        name="magistral_2506",
        models=("Magistral 2506", "tokenizer v11"),
        markers=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        reasoning=_THINK,
        template=(("[TOOL_CALLS]", "[ARGS]", "<think>"),),
        tokens=(),
    ),
    _MISTRAL,
    _dsml("deepseek_v4_1", ("DeepSeek V4.1",), " calls", " invoke", " parameter"),
    _dsml("deepseek_v3_2", ("DeepSeek V3.2",), "function_calls", "invoke", "parameter"),
    _dsml("deepseek_v4", ("DeepSeek V4",), "tool_calls", "invoke", "parameter"),
    replace(
        _DEEPSEEK_V3_1,
        name="deepseek_r1",
        models=("DeepSeek V3", "DeepSeek R1", "DeepSeek R1 0528"),
        reasoning=_THINK,
        calls=replace(
            _DEEPSEEK,
            head="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
            middle="\n```json\n",
            tail="\n```<｜tool▁call▁end｜>",
            separator="\n",
        ),
        template=(("<｜tool▁calls▁begin｜>", "```json"),),
    ),
    _DEEPSEEK_V3_1,
    Protocol(
        name="kimi_k2",
        models=("Kimi K2", "Kimi K2 Thinking", "Kimi K2.5"),
        markers=_KIMI,
        reasoning=_THINK_CLOSE,
        calls=Calls(
            trigger="<|tool_calls_section_begin|>",
            begin="<|tool_calls_section_begin|>",
            head="<|tool_call_begin|>functions.",
            middle=":{number}<|tool_call_argument_begin|>",
            tail="<|tool_call_end|>",
            end="<|tool_calls_section_end|>",
        ),
        turn_end=("<|im_end|>",),
        template=(("<|tool_calls_section_begin|>",),),
        tokens=(("<|tool_calls_section_begin|>",),),
    ),
    Protocol(
        name="minimax_m2",
        models=("MiniMax M2", "MiniMax M2.5", "MiniMax M2.7"),
        markers=("<think>", "</think>", "<minimax:tool_call>", "</minimax:tool_call>"),
        reasoning=_THINK,
        calls=_INVOKES,
        turn_end=("[e~[",),
        template=(("<minimax:tool_call>",),),
        tokens=(("<minimax:tool_call>",),),
    ),
    replace(
        _GLM_4_7,
        name="glm_4_5",
        models=("GLM-4.5", "GLM-4.5-Air", "GLM-4.6"),
        reasoning=Block("<think>", "</think>", "\n", "\n"),
        calls=Calls(
            trigger="<tool_call>",
            head="<tool_call>",
            middle="\n",
            tail="</tool_call>",
            separator="\n",
            pairs=Pairs("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"),
        ),
        template=(("<arg_key>", "</arg_key>\n<arg_value>"), ("<arg_key>", "</arg_key>\\n<arg_value>")),
    ),
    _GLM_4_7,
    replace(
        _QWEN3,
        name="qwen3_coder",
        models=("Qwen3-Coder", "Qwen3-Coder-Next", "Qwen3.5", "Qwen3.6"),
        calls=replace(
            _TAGS,
            head="<tool_call>\n<function=",
            middle=">\n",
            tail="</function>\n</tool_call>",
            pairs=Pairs("<parameter=", ">\n", "\n</parameter>\n", python="words"),
        ),
        template=(("<tool_call>", "<function=", "<parameter="),),
    ),
    replace(
        _QWEN3,
        name="exaone_4",
        models=("EXAONE 4.0",),
        calls=replace(_TAGS, head='<tool_call>{"name": "', tail="}</tool_call>"),
        turn_end=("[|endofturn|]",),
        template=(("<tool_call>", "[|assistant|]"),),
        tokens=(("[|assistant|]", "[|endofturn|]"),),
    ),
    _QWEN3,
    replace(
        _QWEN3,
        name="seed_oss",
        models=("Seed-OSS",),
        markers=("<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"),
        reasoning=Block("<seed:think>", "</seed:think>", "\n", "\n"),
        calls=Calls(
            trigger="<seed:tool_call>",
            head="<seed:tool_call>\n<function=",
            middle=">\n",
            tail="</function>\n</seed:tool_call>",
            before="\n",
            separator="\n",
            pairs=Pairs("<parameter=", ">", "</parameter>\n", python="literals"),
        ),
        turn_end=("<seed:eos>",),
        template=(("<seed:tool_call>",),),
        tokens=(("<seed:tool_call>",),),
    ),
    replace(
        _QWEN3,
        name="longcat",
        models=("LongCat-Flash", "LongCat-Flash-Thinking"),
        markers=("<longcat_tool_call>", "</longcat_tool_call>"),
        reasoning=None,
        calls=replace(
            _TAGS,
            trigger="<longcat_tool_call>",
            head='<longcat_tool_call>\n{"name": "',
            tail="}\n</longcat_tool_call>",
        ),
        turn_end=("</longcat_s>",),
        template=(("<longcat_tool_call>",),),
        tokens=(("<longcat_tool_call>",),),
    ),
    replace(
        _QWEN3,
        name="hunyuan_3",
        models=("Hunyuan 3", "Hy3"),
        markers=_elements("{}:opensource", "tool_sep"),
        reasoning=Block("<think:opensource>", "</think:opensource>"),
        calls=Calls(
            trigger="<tool_calls:opensource>",
            begin="<tool_calls:opensource>\n",
            head="<tool_call:opensource>",
            middle="<tool_sep:opensource>\n",
            tail="</tool_call:opensource>\n",
            end="</tool_calls:opensource>",
            pairs=Pairs(
                "<arg_key:opensource>", "</arg_key:opensource>\n<arg_value:opensource>", "</arg_value:opensource>\n"
            ),
        ),
        turn_end=("<｜hy_eos:opensource｜>",),
        template=(("<tool_sep{}>", "<arg_key{}>"),),
        tokens=(("<tool_sep:opensource>", "<arg_key:opensource>", "<tool_calls:opensource>"),),
    ),
    Protocol(
        name="hunyuan_4",
        models=("Hunyuan 4", "Hy4"),
        suffixed=True,
        markers=_elements("{}"),
        reasoning=_THINK_CLOSE,
        calls=Calls(
            trigger="<tool_calls>",
            begin="<tool_calls>",
            head="<tool_call>",
            middle="",
            tail="</tool_call>",
            end="</tool_calls>",
            pairs=_GLM_PAIRS,
        ),
        template=(("<tool_calls>", "<arg_key>"),),
        tokens=(("<tool_calls>", "<arg_key>", "<arg_value>"),),
    ),
    Protocol(
        name="k2_horizon",
        models=("K2 Horizon",),
        markers=_elements("ifm|{}", "think_fast", "think_faster"),
        reasoning=Block(
            "<ifm|think>",
            "</ifm|think>",
            also=(("<ifm|think_fast>", "</ifm|think_fast>"), ("<ifm|think_faster>", "</ifm|think_faster>")),
        ),
        calls=Calls(
            trigger="<ifm|tool_calls>",
            begin="<ifm|tool_calls>",
            head="<ifm|tool_call>",
            middle="",
            tail="</ifm|tool_call>",
            end="</ifm|tool_calls>",
            pairs=Pairs("<ifm|arg_key>", "</ifm|arg_key><ifm|arg_value>", "</ifm|arg_value>"),
        ),
        template=(("<ifm|tool_calls>", "<ifm|arg_key>"),),
        tokens=(("<ifm|tool_calls>", "<ifm|arg_key>"),),
    ),
    Protocol(
        name="dots",
        models=("dots",),
        markers=("<dots_function_call>", "</dots_function_call>"),
        calls=replace(
            _INVOKES,
            trigger="<dots_function_call>",
            begin="<dots_function_call>\n",
            end="</dots_function_call>",
        ),
        template=(("<dots_function_call>",),),
        tokens=(("<dots_function_call>",),),
    ),
    replace(
        _QWEN3,
        name="mimo",
        models=("MiMo V2",),
        reasoning=_THINK_CLOSE,
        calls=replace(
            _TAGS,
            head="<tool_call><function=",
            middle=">",
            tail="</function></tool_call>",
            pairs=Pairs("<parameter=", ">", "</parameter>"),
        ),
        template=(("<tool_call><function=", "<parameter="),),
        tokens=(),
    ),
    Protocol(
        name="tool_calls_list",
        models=("Apriel 1.5", "Jamba 1.5", "Jamba 1.6"),
        markers=("<tool_calls>", "</tool_calls>"),
        calls=replace(
            _LIST, trigger="<tool_calls>", before="\n", begin="<tool_calls>[", end="]</tool_calls>", tails=_WITH_ID
        ),
        turn_end=("<|end|>", "<|eom|>"),
        template=(("<tool_calls>[",),),
    ),
    Protocol(
        name="hunyuan_a13b",
        models=("Hunyuan A13B", "Hunyuan 0.5B to 7B"),
        markers=(),
        reasoning=Block("<think>\n", "\n</think>", "\n"),
        calls=replace(_LIST, trigger="<tool_calls>", begin="<tool_calls>[", end="]</tool_calls>"),
        frame=Block("<answer>\n", "\n</answer>"),
        turn_end=("<|eos|>",),
        template=(("<tool_calls>[", "<|extra_0|>"),),
        tokens=(("<|startoftext|>", "<|extra_0|>", "<|extra_4|>"),),
    ),
    Protocol(
        name="minimax_m1",
        models=("MiniMax M1",),
        markers=("<think>", "</think>", "<tool_calls>", "</tool_calls>"),
        reasoning=_THINK,
        calls=Calls(
            trigger="<tool_calls>",
            begin="<tool_calls>\n",
            head='{"name": "',
            middle='", "arguments": ',
            tail="}\n",
            end="</tool_calls>",
        ),
        turn_end=("<end_of_sentence>",),
        template=(("<tool_calls>\\n", "<beginning_of_sentence>"),),
    ),
    Protocol(
        name="step_3",
        models=("Step3",),
        markers=(
            "<think>",
            "</think>",
            "<｜tool_calls_begin｜>",
            "<｜tool_calls_end｜>",
            "<｜tool_call_begin｜>",
            "<｜tool_call_end｜>",
            "<｜tool_sep｜>",
        ),
        reasoning=_THINK,
        calls=Calls(
            trigger="<｜tool_calls_begin｜>",
            begin="<｜tool_calls_begin｜>",
            head='<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="',
            middle='">',
            tail="</steptml:invoke><｜tool_call_end｜>",
            end="<｜tool_calls_end｜>",
            pairs=Pairs('<steptml:parameter name="', '">', "</steptml:parameter>"),
        ),
        template=(("<steptml:invoke",),),
        tokens=(("<｜tool_calls_begin｜>", "<｜tool_sep｜>"),),
    ),
    Protocol(
        name="apertus",
        models=("Apertus",),
        markers=("<|inner_prefix|>", "<|inner_suffix|>", "<|tools_prefix|>", "<|tools_suffix|>"),
        reasoning=Block("<|inner_prefix|>", "<|inner_suffix|>"),
        calls=Calls(
            trigger="<|tools_prefix|>",
            begin="<|tools_prefix|>[",
            head='{"',
            middle='": ',
            tail="}",
            end="]<|tools_suffix|>",
            separator=", ",
        ),
        turn_end=("<|assistant_end|>",),
        template=(("<|tools_prefix|>",),),
        tokens=(("<|tools_prefix|>",),),
    ),
    Protocol(
        name="lfm_2",
        models=("LFM2", "LFM2.5"),
        markers=("<think>", "</think>", "<|tool_call_start|>", "<|tool_call_end|>"),
        reasoning=_THINK_CLOSE,
        calls=replace(
            _PYTHON,
            trigger="<|tool_call_start|>",
            unmarked=False,
            begin="<|tool_call_start|>[",
            end="]<|tool_call_end|>",
        ),
        turn_end=("<|im_end|>",),
        template=(("<|tool_call_start|>",),),
        tokens=(("<|tool_call_start|>", "<|tool_call_end|>"),),
    ),
    Protocol(
        name="olmo_3",
        models=("OLMo 3",),
        markers=("<think>", "</think>", "<function_calls>", "</function_calls>"),
        reasoning=_THINK,
        calls=replace(
            _PYTHON,
            trigger="<function_calls>",
            unmarked=False,
            begin="<function_calls>\n",
            end="\n</function_calls>",
            separator="\n",
        ),
        turn_end=("<|im_end|>", "<|endoftext|>"),
        template=(("<function_calls>", "</function_calls>"),),
        tokens=(("<function_calls>", "</function_calls>"),),
    ),
    Protocol(
        name="gigachat_3_1",
        models=("GigaChat 3.1",),
        markers=("<|function_call|>",),
        calls=Calls("<|function_call|>", '<|function_call|>{"name": "', '", "arguments": ', "}"),
        turn_end=("<|message_sep|>",),
        template=(("<|function_call|>",),),
        tokens=(("<|function_call|>",),),
    ),
    Protocol(
        name="granite_20b",
        models=("Granite 20B function calling",),
        markers=("<function_call>",),
        calls=Calls("<function_call>", '<function_call> {"name": "', '", "arguments": ', "}", separator="\n"),
        turn_end=("<|endoftext|>",),
        template=(("<function_call>",),),
    ),
    Protocol(
        name="functionary_3_1",
        models=("Functionary v3.1",),
        markers=(),
        calls=Calls("<function=", "<function=", ">", "</function>"),
        turn_end=("<|eom_id|>", "<|eot_id|>"),
        template=(("<function=", "</function>", "<|eom_id|>"),),
    ),
    Protocol(
        name="functools",
        models=("Phi-4-mini", "Firefunction v2"),
        markers=(),
        calls=replace(_LIST, trigger="functools[", before=" ", begin="functools["),
        turn_end=("<|eot_id|>", "<|end|>"),
        template=(("functools[",),),
    ),
    Protocol(
        name="internlm_2",
        models=("InternLM2", "InternLM2.5", "InternLM3"),
        markers=("<|action_start|>", "<|plugin|>", "<|action_end|>"),
        calls=Calls(
            trigger="<|action_start|><|plugin|>",
            head=_PLUGIN,
            middle='", "arguments": ',
            tail="}<|action_end|>",
            also=((_PLUGIN, '", "parameters": '),),
        ),
        turn_end=("<|im_end|>",),
        template=(("<|action_start|>", "<|plugin|>"),),
        tokens=(("<|action_start|>", "<|plugin|>"),),
    ),
    replace(
        _QWEN3,
        name="ernie_4_5",
        models=("ERNIE 4.5",),
        reasoning=Block("<think>", "</think>", "\n\n\n"),
        frame=Block("<response>\n", "\n</response>"),
        turn_end=("<|end_of_sentence|>",),
        template=(("<tool_call>", "<|begin_of_sentence|>"),),
        tokens=(("<tool_call>", "<|begin_of_sentence|>"),),
    ),
    Protocol(
        name="gemma_4",
        models=("Gemma 4",),
        markers=("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>'),
        reasoning=Block("<|channel>thought\n", "<channel|>"),
        calls=Calls("<|tool_call>", "<|tool_call>call:", "{", "}<tool_call|>", quote='<|"|>', before_content=True),
        turn_end=("<turn|>", "<|tool_response>"),
        template=(("<|tool_call>call:",),),
        tokens=(("<|tool_call>", "<tool_call|>"),),
    ),
    Protocol(
        name="functiongemma",
        models=("FunctionGemma",),
        markers=("<start_function_call>", "<end_function_call>", "<escape>"),
        calls=Calls(
            "<start_function_call>", "<start_function_call>call:", "{", "}<end_function_call>", quote="<escape>"
        ),
        turn_end=("<end_of_turn>", "<start_function_response>"),
        template=(("<start_function_call>",),),
        tokens=(("<start_function_call>", "<end_function_call>"),),
    ),
    Protocol(
        name="llama_4_pythonic",
        models=("Llama 4",),
        markers=("<|python_start|>",),
        calls=replace(_PYTHON, prefix="<|python_start|>"),
        turn_end=("<|python_end|>", "<|eot|>", "<|eom|>"),
        template=(("<|header_start|>", "[func_name1("),),
        tokens=(("<|header_start|>", "<|python_start|>"),),
    ),
    Protocol(
        name="pythonic",
        models=("ToolACE", "Llama 3.2 with pythonic calls", "Gemma 3 with pythonic calls"),
        markers=(),
        calls=_PYTHON,
        turn_end=("<|eom_id|>", "<|eot_id|>", "<end_of_turn>"),
        template=(("[func_name1(",),),
    ),
    Protocol(
        name="xlam",
        models=("xLAM 2",),
        markers=(),
        calls=replace(_LIST, trigger="[", begin="[", unmarked=True),
        turn_end=("<|im_end|>", "<|eot_id|>"),
        template=(('[{"name": "tool_call_name"',),),
    ),
    replace(
        _QWEN3,
        name="granite_4",
        models=("Granite 4.0",),
        reasoning=None,
        turn_end=("<|end_of_text|>",),
        template=(("<tool_call>", "<|start_of_role|>"),),
        tokens=(("<tool_call>", "<|start_of_role|>"),),
    ),
    replace(
        _GRANITE_3,
        name="granite_3_2",
        models=("Granite 3.2 with thinking",),
        reasoning=Block(
            "Here is my thought process:",
            "Here is my response:",
            "\n\n",
            also=(("Here's my thought process:", "Here's my response:"),),
        ),
        template=(("<|start_of_role|>", "Here is my thought process:"),),
        tokens=(),
    ),
    _GRANITE_3,
    replace(
        _QWEN3,
        name="hermes",
        models=("Hermes 2 Pro", "Hermes 3", "Qwen2.5"),
        markers=("<tool_call>", "</tool_call>"),
        reasoning=None,
        template=(("<tool_call>", "</tool_call>"),),
        tokens=(("<tool_call>", "<|im_start|>"),),
    ),
    Protocol(
        name="llama3",
        models=("Llama 3.1", "Llama 3.2", "Llama 3.3"),
        markers=("<|python_tag|>",),
        calls=Calls(
            '{"name": "', '{"name": "', '", "parameters": ', "}", separator="; ", prefix="<|python_tag|>", unmarked=True
        ),
        turn_end=("<|eom_id|>", "<|eot_id|>"),
        template=(("<|start_header_id|>", "<|eot_id|>"),),
        tokens=(("<|start_header_id|>", "<|eot_id|>"), ("<|python_tag|>",)),
    ),
)
"""In the order in which templates and vocabularies are compared with them: the more particular first."""

NAMES: tuple[str, ...] = tuple(protocol.name for protocol in PROTOCOLS)
"""What `Protocol.named` takes."""
