# looptape: marks for zsh. Put this into ~/.zshrc:
#   eval "$(looptape shell-integration zsh)"
# Prompts, commands and exit codes are marked by OSC 133, the directory by OSC 7.
if [[ -o interactive && -z ${__looptape_on-} ]]; then
  typeset -g __looptape_on=1 __looptape_ran=

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
    [[ -n $__looptape_ran ]] && printf '\e]133;D;%s\a' $code
    __looptape_ran=
    __looptape_escape $PWD
    printf '\e]7;file://%s%s\a\e]133;A\a' "$HOST" "$REPLY"
    [[ $PS1 == *'133;B'* ]] || PS1+=$'%{\e]133;B\a%}'
  }

  # Behind the line that was typed.
  __looptape_preexec() {
    local REPLY
    __looptape_ran=1
    __looptape_escape $1
    printf '\e]133;C;cmdline_url=%s\a' "$REPLY"
  }

  autoload -Uz add-zsh-hook
  add-zsh-hook precmd __looptape_precmd
  add-zsh-hook preexec __looptape_preexec
  # First of all, so that the exit code is the command's.
  precmd_functions=(__looptape_precmd ${precmd_functions:#__looptape_precmd})
fi
