# looptape: marks for zsh. Put this into ~/.zshrc:
#   eval "$(looptape shell-integration zsh)"
# Prompts, commands and exit codes are marked by OSC 133, the directory by OSC 7.
if [[ -o interactive && -z ${__looptape_on-} ]]; then
  typeset -g __looptape_on=1 __looptape_ran= __looptape_eol=

  # Percent-encodes $1, of which at most 4096 bytes, into REPLY.
  __looptape_escape() {
    emulate -L zsh
    setopt no_multibyte extended_glob
    local in=${1[1,4096]}
    REPLY=${in//(#m)[^a-zA-Z0-9\/._~-]/%${(l:2::0:)$(([##16]#MATCH))}}
  }

  # In front of each prompt.
  __looptape_precmd() {
    local code=$? REPLY
    if [[ -n $__looptape_ran ]]; then
      if [[ ${PROMPT_EOL_MARK-} != "$__looptape_ran" ]] || ! [[ -o prompt_sp && -o prompt_cr ]]; then
        printf '\e]133;D;%s\a' $code
      fi
      if [[ ${PROMPT_EOL_MARK-} == "$__looptape_ran" ]]; then
        unset PROMPT_EOL_MARK
        [[ -z $__looptape_eol ]] || PROMPT_EOL_MARK="${__looptape_eol#x}"
      fi
    fi
    __looptape_ran=
    __looptape_escape $PWD
    printf '\e]7;file://%s%s\a\e]133;A\a' "$HOST" "$REPLY"
    [[ $PS1 == *'133;B'* ]] || PS1+=$'%{\e]133;B\a%}'
  }

  # Behind the line that was typed. Before it calls precmd, zsh ends a line that
  # the command has left (PROMPT_SP) by PROMPT_EOL_MARK and blanks: the mark of the
  # command's end goes in front of these.
  __looptape_preexec() {
    local REPLY
    __looptape_eol="${PROMPT_EOL_MARK+x$PROMPT_EOL_MARK}"
    __looptape_ran=$'%{\e]133;D;%?\a%}'"${PROMPT_EOL_MARK-%B%S%#%s%b}"
    PROMPT_EOL_MARK="$__looptape_ran"
    __looptape_escape $1
    printf '\e]133;C;cmdline_url=%s\a' "$REPLY"
  }

  autoload -Uz add-zsh-hook
  add-zsh-hook precmd __looptape_precmd
  add-zsh-hook preexec __looptape_preexec
  # First of all, so that the exit code is the command's.
  precmd_functions=(__looptape_precmd ${precmd_functions:#__looptape_precmd})
fi
