"""The columns of the bundled SUPPORT table: published name, meaning, unit, role and kind, one entry each.

Roles: "baseline" is known when the patient is assessed and makes the table; "score" is calculated from baseline
values or repeats one, so it would count them twice; "outcome" happened later and is kept for judging subtypes.
"""

from dataclasses import dataclass

SKEWED = "positive with a long right tail"
SKEWED_WITH_ZEROS = "a few zeros, the others with a long right tail"
FAR_OUT = "a number on a continuous scale, some of them far out"
REAL = "a number on a continuous scale"
KIND_OF = {SKEWED: "lognormal", SKEWED_WITH_ZEROS: "zero_lognormal", FAR_OUT: "student_t", REAL: "gaussian"}


@dataclass(frozen=True)
class SupportColumn:
    """One column of the bundled file: what it is, where it comes from and how the table treats it."""

    name: str
    source: str
    role: str
    dtype: str
    unit: str
    meaning: str
    kind: str = ""
    reason: str = ""
    levels: tuple[str, ...] = ()
    trials: int | None = None


def _baseline(name: str, source: str, dtype: str, unit: str, meaning: str, kind: str, reason: str) -> SupportColumn:
    return SupportColumn(name, source, "baseline", dtype, unit, meaning, kind, reason)


def _real(name: str, source: str, unit: str, meaning: str, reason: str = REAL) -> SupportColumn:
    return _baseline(name, source, "float64", unit, meaning, KIND_OF[reason], reason)


def _binary(name: str, source: str, meaning: str, levels: tuple[str, str] = ("no", "yes")) -> SupportColumn:
    return SupportColumn(name, source, "baseline", "str", "", meaning, "bernoulli", "two values", levels)


def _category(name: str, source: str, meaning: str, levels: tuple[str, ...], ordered: bool = False) -> SupportColumn:
    reason = f"{len(levels)} named levels" + (" in order; categorical makes no use of the order" if ordered else "")
    dtype = "category" if ordered else "str"
    return SupportColumn(name, source, "baseline", dtype, "", meaning, "categorical", reason, levels)


def _activities(name: str, source: str, informant: str) -> SupportColumn:
    meaning, reason = f"limits in activities of daily living, told by {informant}", "so many limits out of 7 activities"
    return SupportColumn(name, source, "baseline", "Int64", "of 7", meaning, "binomial", reason, trials=7)


def _score(name: str, source: str, unit: str, meaning: str) -> SupportColumn:
    return SupportColumn(name, source, "score", "float64", unit, meaning)


def _outcome(name: str, source: str, dtype: str, unit: str, meaning: str) -> SupportColumn:
    return SupportColumn(name, source, "outcome", dtype, unit, meaning)


DIAGNOSES = ("ARF/MOSF w/Sepsis", "CHF", "COPD", "Cirrhosis", "Colon Cancer", "Coma", "Lung Cancer", "MOSF w/Malig")
COMA = ("0", "9", "26", "37", "41", "44", "55", "61", "89", "94", "100")
STATES = ("no marked limits", "limits in daily activities", "sickness impact 30 or more", "coma or intubated", "died")
INCOMES = ("under $11k", "$11-$25k", "$25-$50k", ">$50k")
EDUCATION = "whole years on a scale, not a number of events"
ILLNESSES = "a count; its variance equals 0.97 of its mean"
COMA_SCORE = "SUPPORT coma score on day 3, from the Glasgow scale; 0 awake, 100 deepest"
PROGNOSIS = "the physician's estimate, at entry, of the probability to survive two months"
LATER_PROGNOSIS = "the physician's six-month estimate, in part filled in as the cube of the two-month one"
STATE = "state at two months, mildest first; no interview with a survivor leaves a gap"

BASELINE = (
    _real("age", "age", "years", "age at study entry"),
    _binary("sex", "sex", "sex as recorded", ("female", "male")),
    _category("race", "race", "race as recorded", ("asian", "black", "hispanic", "other", "white")),
    _baseline("education", "edu", "Int64", "years", "years of education", "gaussian", EDUCATION),
    _category("income", "income", "yearly household income in US dollars of about 1990", INCOMES, ordered=True),
    _category("diagnosis_group", "dzgroup", "group of the illness that qualified the patient for the study", DIAGNOSES),
    _category("cancer", "ca", "cancer as a main or accompanying illness", ("no", "yes", "metastatic")),
    _baseline("n_comorbidities", "num.co", "int64", "count", "number of accompanying illnesses", "poisson", ILLNESSES),
    _binary("diabetes", "diabetes", "diabetes as an accompanying illness"),
    _binary("dementia", "dementia", "dementia as an accompanying illness"),
    _binary("do_not_resuscitate", "dnr", "an order not to resuscitate was in force before study entry"),
    _category("coma_score", "scoma", COMA_SCORE, COMA, ordered=True),
    _activities("activity_limits_patient", "adlp", "the patient"),
    _activities("activity_limits_surrogate", "adls", "a relative"),
    _baseline("physician_survival_2_months", "prg2m", "float64", "share", PROGNOSIS, "beta", "a share between 0 and 1"),
    _real("mean_blood_pressure", "meanbp", "mmHg", "mean arterial blood pressure, day 3"),
    _real("heart_rate", "hrt", "1/min", "heart rate, day 3"),
    _real("respiratory_rate", "resp", "1/min", "respiratory rate, day 3"),
    _real("temperature", "temp", "°C", "body temperature, day 3"),
    _real("white_blood_cells", "wblc", "1000/µL", "white blood cell count, day 3", FAR_OUT),
    _real("oxygenation", "pafi", "mmHg", "PaO2 / FiO2 (inspired share from 0 to 1), day 3"),
    _real("arterial_ph", "ph", "pH", "arterial pH, day 3"),
    _real("albumin", "alb", "g/dL", "serum albumin, day 3", SKEWED),
    _real("bilirubin", "bili", "mg/dL", "serum bilirubin, day 3", SKEWED),
    _real("creatinine", "crea", "mg/dL", "serum creatinine, day 3", SKEWED),
    _real("sodium", "sod", "mEq/L", "serum sodium, day 3"),
    _real("glucose", "glucose", "mg/dL", "serum glucose, day 3", SKEWED_WITH_ZEROS),
    _real("urea_nitrogen", "bun", "mg/dL", "blood urea nitrogen, day 3", SKEWED),
    _real("urine_output", "urine", "mL/day", "urine output, day 3"),
)

SCORES = (
    _score("support_physiology_score", "sps", "points", "SUPPORT physiology score, day 3"),
    _score("apache_physiology_score", "aps", "points", "APACHE III acute physiology score, day 3"),
    _score("model_survival_2_months", "surv2m", "share", "two-month survival by the SUPPORT model"),
    _score("model_survival_6_months", "surv6m", "share", "six-month survival by the SUPPORT model"),
    _score("physician_survival_6_months", "prg6m", "share", LATER_PROGNOSIS),
)

OUTCOMES = (
    _outcome("died", "death", "boolean", "", "died by the end of follow-up (end of 1994)"),
    _outcome("follow_up_days", "d.time", "int64", "days", "days from study entry to death or end of follow-up"),
    _outcome("died_in_hospital", "hospdead", "boolean", "", "died before discharge"),
    _outcome("length_of_stay", "slos", "int64", "days", "days from study entry to discharge or death"),
    SupportColumn("function_2_months", "sfdm2", "outcome", "category", "", STATE, levels=STATES),
    _outcome("later_do_not_resuscitate", "dnr", "boolean", "", "order not to resuscitate given after study entry"),
    _outcome("treatment_intensity", "avtisst", "float64", "points", "mean TISS treatment score, days 3 to 25"),
    _outcome("charges", "charges", "float64", "US dollars", "hospital charges"),
    _outcome("cost", "totcst", "float64", "US dollars", "cost, from charges by the ratio of cost to charges"),
)

FIELDS = BASELINE + SCORES + OUTCOMES
