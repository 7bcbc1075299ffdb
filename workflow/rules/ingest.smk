# Profiler exports named in the config (exports), read into one table and, with a mapping, compared with simulation.


rule ingest:
    input:
        config["exports"],
    output:
        "results/ingested.csv",
    log:
        "results/logs/ingest.log",
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} ingest {input} -o {output} > {log} 2>&1"


rule validate_exports:
    input:
        table="results/ingested.csv",
        mapping=config["mapping"] or [],
    output:
        csv=report("results/exports/summary.csv", caption="../report/summary.rst", category="Accuracy"),
        json="results/exports/summary.json",
    log:
        "results/logs/validate_exports.log",
    params:
        max_seqlen=config["max_seqlen"],
        package=PACKAGE,
    shell:
        "{SIMFA} validate --measured {input.table} --mapping {input.mapping} --max-seqlen {params.max_seqlen}"
        " --quiet -o results/exports > {log} 2>&1"
