# One mechanism changed at a time, and every preset value moved a little: where the config asks for it.

if "ablation" in config:

    rule ablation:
        input:
            files_of(*config["ablation"]["gpus"], *config["ablation"]["overlays"]),
        output:
            json="results/studies/ablation.json",
            figures="results/studies/ablation/figures.json",
            csv=report("results/studies/ablation.csv", caption="../report/ablation.rst", category="Studies"),
        log:
            "results/logs/ablation.log",
        benchmark:
            "results/benchmarks/ablation.tsv"
        threads: workflow.cores
        params:
            choice=" ".join(
                [
                    flags("--cases", config["ablation"]["cases"]),
                    flags("--gpu", config["ablation"]["gpus"]),
                    flags("--overlay", config["ablation"]["overlays"]),
                    flags("--max-seqlen", [config["ablation"]["max_seqlen"]]),
                ]
            ),
            package=PACKAGE,
        shell:
            "{SIMFA} ablate {params.choice} --jobs {threads} --quiet -o {output.json} -o {output.csv}"
            " --figures results/studies/ablation > {log} 2>&1"


if "sensitivity" in config:

    rule sensitivity:
        input:
            files_of(config["sensitivity"]["gpu"]),
        output:
            json="results/studies/sensitivity.json",
            figures="results/studies/sensitivity/figures.json",
            csv=report("results/studies/sensitivity.csv", caption="../report/sensitivity.rst", category="Studies"),
            plot=report(
                "results/studies/sensitivity/tornado.svg", caption="../report/sensitivity.rst", category="Studies"
            ),
        log:
            "results/logs/sensitivity.log",
        benchmark:
            "results/benchmarks/sensitivity.tsv"
        threads: workflow.cores
        params:
            shape=config["sensitivity"]["shape"],
            gpu=config["sensitivity"]["gpu"],
            perturbation=config["sensitivity"]["perturbation"],
            package=PACKAGE,
        shell:
            "{SIMFA} sensitivity {params.shape} --gpu {params.gpu:q} --perturbation {params.perturbation} --jobs {threads}"
            " --quiet -o {output.json} -o {output.csv} --figures results/studies/sensitivity > {log} 2>&1"
