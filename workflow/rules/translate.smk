# Logs to traces.


rule translate:
    input:
        log_file,
    output:
        "results/runs/{log}/run.satrace",
    log:
        "results/logs/translate-{log}.log",
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} translate {input:q} -o {output} > {log} 2>&1"


rule log_info:
    input:
        log_file,
    output:
        "results/runs/{log}/log.json",
    log:
        "results/logs/log_info-{log}.log",
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} log info {input:q} --json > {output} 2> {log}"
