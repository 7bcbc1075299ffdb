# Errors case by case, and the report.


rule validate:
    input:
        stats=stats_files,
        logs=expand("results/runs/{log}/log.json", log=LOGS),
    output:
        csv=report("results/summary.csv", caption="../report/summary.rst", category="Accuracy"),
        json="results/summary.json",
    log:
        "results/logs/validate.log",
    params:
        sets=flags("--set", config["measured_sets"]),
        runs=lambda wildcards, input: flags("--results", input.stats),
        max_seqlen=config["max_seqlen"],
        clock_model=config["clock_model"],
        package=PACKAGE,
    shell:
        "{SIMFA} validate {params.sets} --max-seqlen {params.max_seqlen} --clock-model {params.clock_model}"
        " {params.runs} -o results > {log} 2>&1"


rule figures:
    output:
        index="results/figures/figures.json",
        drawings=report(
            expand("results/figures/{name}.svg", name=["llc_traffic", "dram_traffic", "roofline"]),
            caption="../report/figures.rst",
            category="Analytical model",
        ),
    log:
        "results/logs/figures.log",
    priority: 1000
    params:
        package=PACKAGE,
    shell:
        "{SIMFA} figures -o results/figures > {log} 2>&1"


rule report:
    input:
        figures="results/figures/figures.json",
        memory="results/memory/figures/figures.json",
        studies=[f"{folder}/figures.json" for folder in study_folders()],
        summaries=["results/summary.json", *compared_exports()],
        runs=expand("results/runs/{log}/stats.json", log=LOGS),
        timeline="results/timeline/timeline.npz",
    output:
        html=report(
            "results/report.html",
            caption="../report/accuracy.rst",
            category="Accuracy",
        ),
        gantt=report("results/gantt.png", caption="../report/gantt.rst", category="Timeline"),
    log:
        "results/logs/report.log",
    params:
        summaries=lambda wildcards, input: flags("--summary", input.summaries),
        runs=lambda wildcards, input: flags("--run", input.runs),
        folders=flags("--figures", ["results/figures", "results/memory/figures", *study_folders()]),
        package=PACKAGE,
    shell:
        "{SIMFA} report {params.summaries} {params.runs} --timeline {input.timeline}"
        " {params.folders} -o results > {log} 2>&1"


rule readme:
    input:
        "results/summary.json",
    params:
        script=workflow.source_path("../scripts/results_table.py"),
        readme=DATA.parent / "README.md",
    shell:
        "{PYTHON} {params.script} {input} {params.readme}"
