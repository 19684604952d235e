# looptape: marks for bash 4.4 or later. Put this into ~/.bashrc:
#   eval "$(looptape shell-integration bash)"
# Prompts, commands and exit codes are marked by OSC 133, the directory by OSC 7.
if [[ $- == *i* && -z ${__looptape_on-} ]]; then
  __looptape_on=1 __looptape_ran='' __looptape_seen='' __looptape_void=x

  # Percent-encodes $1, of which at most 4096 bytes, into __looptape_text.
  __looptape_escape() {
    local LC_ALL=C in=${1:0:4096} out='' c n i
    for ((i = 0; i < ${#in}; i++)); do
      c=${in:i:1}
      case $c in
        [a-zA-Z0-9/._~-]) out+=$c ;;
        *) printf -v n %d "'$c"; printf -v c %%%02X $((n & 255)); out+=$c ;;
      esac
    done
    __looptape_text=$out
  }

  # In front of each prompt.
  __looptape_prompt() {
    local code=$? __looptape_text
    [[ -n $__looptape_ran ]] && printf '\e]133;D;%s\a' "$code"
    __looptape_ran=''
    __looptape_seen=$(HISTTIMEFORMAT='' history 1)
    __looptape_escape "$PWD"
    printf '\e]7;file://%s%s\a\e]133;A\a' "${HOSTNAME-}" "$__looptape_text"
    [[ $PS1 == *'133;B'* ]] || PS1+='\[\e]133;B\a\]'
    return "$code"
  }

  # Behind the line that was typed. What the history does not keep has no name, such as
  # a command that equals the last one (HISTCONTROL=ignoredups): nothing else tells here
  # what was typed, and a command that begins with a space must not get its name.
  __looptape_command() {
    local line __looptape_text=''
    line=$(HISTTIMEFORMAT='' history 1)
    if [[ $line != "$__looptape_seen" && $line =~ ^\ *[0-9]+\*?\ \ (.*) ]]; then
      __looptape_escape "${BASH_REMATCH[1]}"
    fi
    printf '\e]133;C;cmdline_url=%s\a' "$__looptape_text"
  }

  if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
    PROMPT_COMMAND=(__looptape_prompt "${PROMPT_COMMAND[@]}")
  else
    PROMPT_COMMAND="__looptape_prompt${PROMPT_COMMAND:+; $PROMPT_COMMAND}"
  fi
  PS0+='${__looptape_void:$((__looptape_ran=1)):0}$(__looptape_command)'
fi
