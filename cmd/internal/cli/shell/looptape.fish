# looptape: marks for fish. Put this into ~/.config/fish/config.fish:
#   looptape shell-integration fish | source
# Prompts, commands and exit codes are marked by OSC 133, the directory by OSC 7.
# fish 4 and later does so by itself.
if status is-interactive; and string match -qr '^[0-3]\.' -- $version; and not set -q __looptape_on
    set -g __looptape_on 1

    function __looptape_prompt --on-event fish_prompt
        printf '\e]7;file://%s%s\a\e]133;A\a' $hostname (string escape --style=url -- $PWD)
    end

    function __looptape_preexec --on-event fish_preexec
        printf '\e]133;C;cmdline_url=%s\a' (string sub -l 4096 -- $argv[1] | string escape --style=url | string join '%0A')
    end

    function __looptape_postexec --on-event fish_postexec
        printf '\e]133;D;%s\a' $status
    end
end
