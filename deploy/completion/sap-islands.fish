# Completion of sap-server, sap-client and sap-islands in fish: commands and flags from --help.
function __sap_islands_words
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l command
    if test (count $words) -gt 1; and not string match --quiet -- '-*' $words[2]
        set command $words[2]
    end
    $words[1] $command --help 2>/dev/null | string match --regex --all -- '--[a-z][a-z0-9-]+' | sort -u
    if not set --query command[1]
        $words[1] --help 2>/dev/null | string replace --filter --regex '^ {2,4}([a-z][a-z-]*) .*' '$1'
    end
end
for program in sap-server sap-client sap-islands
    complete --command $program --arguments '(__sap_islands_words)'
end
